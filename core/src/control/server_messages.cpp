// SPDX-License-Identifier: Apache-2.0
// How a server handles the messages it receives.
#include <utility>

#include "control/server_thread.hpp"
#include "triax/text.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

Message failed_message(const Failure& failure) {
  return make_message(failure.lost ? Kind::lost : Kind::failed, failure.rank, failure.why);
}

} // namespace

/// Returns whether there was something to read.
bool ServerThread::serve(Peer& peer, Clock::time_point now) {
  Connection& connection = peer.connection;
  connection.flush();
  if (peer.leaving) {
    connection.skip();
    update_events(peer);
    return false;
  }
  const bool received = connection.pending() < kPauseBytes && connection.receive();
  if (received && peer.rank != kNoRank) registry_.heard(peer.rank, now);
  peer.suspect |= received;
  const auto may_take = [&] { return connection.ended() || connection.pending() < kPauseBytes; };
  while (!peer.leaving && may_take()) {
    const std::optional<std::string> frame = connection.take();
    if (!frame) break;
    if (peer.rank == kNoRank) {
      hello(peer, *frame, now);
    } else {
      message(peer, *frame, now);
    }
  }
  peer.paused = !may_take();
  update_events(peer);
  return received;
}

void ServerThread::hello(Peer& peer, const std::string& frame, Clock::time_point now) {
  const std::optional<Hello> hello = decode_hello(frame);
  if (!hello) return peer.connection.end("no hello");
  if (hello->version != kProtocolVersion)
    return reject(peer, kNoRank, text("protocol version {} instead of {}", hello->version, kProtocolVersion),
                  text("the server has protocol version {}, this rank {}: use the same build of Triax on all ranks",
                       kProtocolVersion, hello->version),
                  now);
  if (!request_.token.matches(hello->token))
    return reject(peer, hello->rank, hello->token.empty() ? "no token" : "wrong token", "", now);
  if (const std::string why = registry_.refusal(*hello); !why.empty()) return reject(peer, hello->rank, why, why, now);
  peer.rank = hello->rank;
  by_rank_[static_cast<std::size_t>(peer.rank)] = &peer;
  members_.splice(members_.end(), pending_, peer.self);
  peer.connection.set_limit(kMaxFrameBytes);
  registry_.add(*hello, now);
  send(peer.rank, make_message(Kind::welcome));
  if (stop_) send(peer.rank, make_message(Kind::stop, *stop_));
  if (registry_.failure()) send(peer.rank, failed_message(*registry_.failure()));
}

void ServerThread::message(Peer& peer, const std::string& frame, Clock::time_point now) {
  std::optional<Message> message = decode_message(frame);
  if (!message) return peer.connection.end("invalid protocol message");
  const int rank = peer.rank;
  switch (message->kind) {
    case Kind::beat:
      registry_.set_position(rank, std::move(message->value), now, {stalled_s(*message), waiting_s(*message)});
      if (has_seen_failure(*message)) registry_.set_seen_failure(rank);
      return send(rank, make_message(Kind::beat));
    case Kind::rank_failed:
      return rank_failed(peer, std::move(*message), now);
    case Kind::goodbye:
      return leave(peer, now);
    default:
      return request(peer, std::move(*message));
  }
}

void ServerThread::request(Peer& peer, Message request) {
  switch (request.kind) {
    case Kind::set:
    case Kind::get:
    case Kind::add:
    case Kind::barrier:
    case Kind::forget:
      return store_.handle(peer.rank, std::move(request));
    case Kind::worker_message: {
      Message done = make_message(Kind::done);
      done.id = request.id;
      if (!worker_messages_.add({peer.rank, std::move(request.key), std::move(request.value)}))
        return peer.connection.end("it sent more messages than the launcher reads");
      return send(peer.rank, done);
    }
    default:
      peer.connection.end("it sent a message that only the server may send");
  }
}

void ServerThread::rank_failed(Peer& peer, Message message, Clock::time_point now) {
  const RankFailureKind why = failure_kind(message);
  registry_.set_position(peer.rank, std::move(message.key), now);
  registry_.set_seen_failure(peer.rank);
  if (why == RankFailureKind::waiting) registry_.timed_out(peer.rank);
  Failure failure{peer.rank, false, std::move(message.value), why == RankFailureKind::stuck};
  note(registry_.cause_of(std::move(failure), since_server_s(message), request_.silence_s, now), now);
}

/// `answer`: sent to the other end; contains nothing about the job if the token was wrong.
void ServerThread::reject(Peer& peer, int rank, const std::string& reason, const std::string& answer,
                          Clock::time_point now) {
  rejections_.add(rank, peer.from, reason);
  peer.connection.send(encode(make_message(Kind::refused, 0, answer)));
  peer.connection.finish();
  peer.leaving = true;
  peer.since = now;
}

void ServerThread::leave(Peer& peer, Clock::time_point now) {
  send(peer, encode(make_message(Kind::goodbye)));
  registry_.left(peer.rank);
  store_.drop(peer.rank);
  by_rank_[static_cast<std::size_t>(peer.rank)] = nullptr;
  peer.leaving = true;
  peer.since = now;
}

void ServerThread::note(const Failure& failure, Clock::time_point now) {
  if (registry_.note(failure, now)) send_to_all(failed_message(*registry_.failure()));
}

void ServerThread::send(int rank, const Message& message) {
  if (Peer* peer = peer_of(rank)) send(*peer, encode(message));
}

void ServerThread::send_to_all(const Message& message) {
  const std::string frame = encode(message);
  for (Peer* peer : by_rank_)
    if (peer) send(*peer, frame);
}

void ServerThread::send(Peer& peer, std::string_view frame) {
  peer.connection.send(frame);
  update_events(peer);
}

ServerThread::Peer* ServerThread::peer_of(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return rank >= 0 && at < by_rank_.size() ? by_rank_[at] : nullptr;
}

} // namespace triax::control
