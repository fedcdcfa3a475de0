// What a server does with what it hears.
#include <algorithm>
#include <utility>

#include "control/server_thread.hpp"
#include "triax/text.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

Message told(const Failure& failure) {
  return make_message(failure.lost ? Kind::lost : Kind::failed, failure.rank, failure.why);
}

} // namespace

void ServerThread::serve(Peer& peer, Clock::time_point now) {
  Connection& connection = peer.connection;
  connection.flush();
  if (peer.leaving) return connection.skip();
  if (connection.pending() < kPauseBytes && connection.receive() && peer.rank != kStranger)
    roster_.heard(peer.rank, now);
  while (!peer.leaving && (connection.ended() || connection.pending() < kPauseBytes)) {
    const std::optional<std::string> frame = connection.take();
    if (!frame) break;
    if (peer.rank == kStranger) {
      hello(peer, *frame, now);
    } else {
      message(peer, *frame, now);
    }
  }
}

void ServerThread::hello(Peer& peer, const std::string& frame, Clock::time_point now) {
  const std::optional<Hello> hello = decode_hello(frame);
  if (!hello) return peer.connection.end("no hello");
  if (hello->version != kProtocolVersion)
    return refuse(peer,
                  text("it speaks version {} of the protocol, and this rank {}: all ranks need the same triax",
                       kProtocolVersion, hello->version),
                  now);
  if (!request_.token.matches(hello->token)) return refuse(peer, "", now);
  if (const std::string why = roster_.refusal(*hello); !why.empty()) return refuse(peer, why, now);
  peer.rank = hello->rank;
  peer.connection.set_limit(kMaxFrameBytes);
  roster_.came(*hello, now);
  send(peer.rank, make_message(Kind::welcome));
  if (stop_) send(peer.rank, make_message(Kind::stop, *stop_));
  if (roster_.failure()) send(peer.rank, told(*roster_.failure()));
}

void ServerThread::message(Peer& peer, const std::string& frame, Clock::time_point now) {
  std::optional<Message> message = decode_message(frame);
  if (!message) return peer.connection.end("it sent what is no message of this protocol");
  const int rank = peer.rank;
  switch (message->kind) {
    case Kind::beat:
      roster_.is_at(rank, std::move(message->value), now);
      if (message->number != 0) roster_.knows(rank);
      return send(rank, make_message(Kind::beat));
    case Kind::gave_up:
      roster_.is_at(rank, std::move(message->key), now);
      return note({rank, false, std::move(message->value)}, now);
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
    case Kind::tell: {
      Message done = make_message(Kind::done);
      done.id = request.id;
      told_.push_back({peer.rank, std::move(request.key), std::move(request.value)});
      return send(peer.rank, done);
    }
    default:
      peer.connection.end("it sent a message that only a server sends");
  }
}

void ServerThread::refuse(Peer& peer, const std::string& why, Clock::time_point now) {
  peer.connection.send(encode(make_message(Kind::refused, 0, why)));
  peer.connection.finish();
  peer.leaving = true;
  peer.since = now;
}

void ServerThread::leave(Peer& peer, Clock::time_point now) {
  send(peer.rank, make_message(Kind::goodbye));
  roster_.left(peer.rank);
  store_.drop(peer.rank);
  peer.leaving = true;
  peer.since = now;
}

void ServerThread::note(const Failure& failure, Clock::time_point now) {
  if (roster_.note(failure, now)) send_to_all(told(failure));
}

void ServerThread::send(int rank, const Message& message) {
  if (Peer* peer = peer_of(rank)) peer->connection.send(encode(message));
}

void ServerThread::send_to_all(const Message& message) {
  const std::string frame = encode(message);
  for (const std::unique_ptr<Peer>& peer : peers_) {
    if (peer->rank != kStranger && !peer->leaving) peer->connection.send(frame);
  }
}

ServerThread::Peer* ServerThread::peer_of(int rank) {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [rank](const std::unique_ptr<Peer>& peer) {
    return peer->rank == rank && !peer->leaving;
  });
  return found == peers_.end() ? nullptr : found->get();
}

} // namespace triax::control
