// SPDX-License-Identifier: Apache-2.0
#include "p2p_communicator.hpp"

#include <algorithm>

#include "staging.hpp"
#include "triax/poll_pause.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::p2p {

namespace {

/// Calls of each kind at the start. A rank needs more only if it reduces the buckets of more layers at once.
constexpr std::size_t kCalls = 64;

} // namespace

MessageCommunicator::MessageCommunicator(const Group& group, std::shared_ptr<PeerEndpoints> endpoints)
    : Communicator(group),
      endpoints_(*endpoints),
      transport_(endpoints->transport()),
      plan_(group.size(), endpoints->transport().staging() != nullptr),
      limits_(endpoints->transport().limits()),
      pool_(std::make_shared<Pool>()) {
  pool_->endpoints = std::move(endpoints);
  idle_reduction();
  idle_movement();
  idle_exchange();
  transport_.device().add_source(*this);
}

MessageCommunicator::~MessageCommunicator() {
  transport_.device().remove_source(*this);
  for_queued([&](Call& call) {
    call.end();
    call.keep_alive(pool_);
  });
  endpoints_.close();
  if (transport_.retired()) transport_.keep(pool_);
}

template <class Body>
void MessageCommunicator::for_queued(Body body) {
  for (const auto& call : pool_->reductions)
    if (call->queued()) body(*call);
  for (const auto& call : pool_->movements)
    if (call->queued()) body(*call);
  for (const auto& call : pool_->exchanges)
    if (call->queued()) body(*call);
}

template <class Some, class Make>
Some& MessageCommunicator::idle(std::vector<std::unique_ptr<Some>>& calls, int most, Make make) {
  for (const auto& call : calls)
    if (call->reusable()) return *call;
  // Add many at once: the number in flight depends on the timing of other ranks.
  const std::size_t first = calls.size(),
                    more = std::min(std::max(first, kCalls), static_cast<std::size_t>(most) - first);
  if (more == 0)
    throw Error(text("{} calls of rank {} are in flight, the most that tags of {} can distinguish", most,
                     endpoints_.world_rank(rank()), transport_.plugin()),
                text("group {}", endpoints_.id()), "wait for earlier calls before more are posted");
  for (std::size_t i = 0; i < more; ++i) calls.push_back(make());
  return *calls[first];
}

Reduction& MessageCommunicator::idle_reduction() {
  return idle(pool_->reductions, limits_.collectives, [&] { return std::make_unique<Reduction>(endpoints_, plan_); });
}

Movement& MessageCommunicator::idle_movement() {
  return idle(pool_->movements, limits_.collectives, [&] { return std::make_unique<Movement>(endpoints_, plan_); });
}

Exchange& MessageCommunicator::idle_exchange() {
  return idle(pool_->exchanges, limits_.exchanges, [&] {
    auto call = std::make_unique<Exchange>(endpoints_);
    call->reserve(most_transfers_);
    return call;
  });
}

/// Creates it at the first call on a stream.
StreamScratch& MessageCommunicator::scratch_of(const Stream& stream) {
  for (const auto& scratch : pool_->scratches)
    if (scratch->stream == &stream) return *scratch;
  pool_->scratches.push_back(std::make_unique<StreamScratch>(stream, transport_.device(), size(), rank(), plan_));
  return *pool_->scratches.back();
}

void MessageCommunicator::progress() noexcept {
  if (!endpoints_.aborted()) return;
  endpoints_.announce();
  for_queued([](Call& call) { call.fail_when_quiet(); });
}

void MessageCommunicator::abort(std::string_view why) noexcept {
  endpoints_.abort(text("rank {} aborted group {}: {}", endpoints_.world_rank(rank()), endpoints_.id(), why));
}

CollectiveCall& MessageCommunicator::idle_call(const Collective& collective) {
  if (collective.reduces()) return idle_reduction();
  return idle_movement();
}

Work MessageCommunicator::do_collective(const Collective& collective, const TensorView& in, const TensorView& out,
                                        Stream& stream, ActionId action) {
  if (endpoints_.aborted()) return failed_post(endpoints_.reason(), action);
  CollectiveCall& call = idle_call(collective);
  if (Staging* staging = transport_.staging()) {
    const auto [direct, bytes] = call.staging_need(collective);
    call.set_buffers(direct, direct ? staging->device_buffers(stream, bytes) : staging->buffers(stream, bytes));
  }
  const Event event = call.start(collective, in, out, ++posted_, scratch_of(stream));
  if (Reduction::is_small(plan_, collective)) { // the whole vector to every other member
    const std::uint64_t moved = in.bytes() * static_cast<std::uint64_t>(size() - 1);
    count({moved, moved});
  } else {
    count(payload_of(collective));
  }
  stream.post(call);
  return {event, action};
}

Work MessageCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  if (endpoints_.aborted()) return failed_post(endpoints_.reason(), action);
  for (const Transfer& transfer : transfers) {
    if (transfer.channel >= 0 && transfer.channel < limits_.channels) continue;
    throw Error(text("exchange: channel must be in [0, {}], got {}", limits_.channels - 1, transfer.channel),
                text("group {}", group().id), "number channels from 0");
  }
  if (transfers.size() > most_transfers_) {
    // Any exchange of the pool may be used for the next set of this size.
    most_transfers_ = transfers.size();
    for (const auto& call : pool_->exchanges) call->reserve(most_transfers_);
  }
  Exchange& call = idle_exchange();
  call.clear();
  for (const Transfer& transfer : transfers) {
    call.add(transfer, port(transfer).next++);
    const std::uint64_t bytes = transfer.view.bytes();
    count(transfer.direction == Direction::send ? Payload{bytes, 0} : Payload{0, bytes});
  }
  if (transport_.direct()) {
    call.go_direct();
  } else if (Staging* staging = transport_.staging()) {
    call.set_buffers(staging->buffers(stream, call.staging_bytes()));
  }
  const Event event = call.start();
  stream.post(call);
  return {event, action};
}

MessageCommunicator::Port& MessageCommunicator::port(const Transfer& transfer) {
  for (Port& port : ports_) {
    if (port.direction == transfer.direction && port.peer == transfer.peer && port.channel == transfer.channel) {
      return port;
    }
  }
  return ports_.emplace_back(Port{transfer.direction, transfer.peer, transfer.channel, 0});
}

void MessageCommunicator::barrier(Deadline deadline) {
  const auto location = [&] { return text("barrier of group {}", endpoints_.id()); };
  WaitDeadline until(deadline);
  PollPause pause;
  const auto wait_for = [&](int member, auto ready) {
    while (!ready()) {
      if (endpoints_.aborted()) throw Error(endpoints_.reason(), location());
      transport_.device().abort_flag().check();
      if (endpoints_.left(member) && !ready())
        throw Error(text("rank {} has left", endpoints_.world_rank(member)), location());
      if (until.passed()) {
        throw Error(text("timed out waiting for rank {}", endpoints_.world_rank(member)), location(),
                    "the rank may be slow or lost; train.stall_timeout_s sets the timeout");
      }
      pause.after_poll(transport_.device().progress());
    }
  };
  if (endpoints_.aborted()) throw Error(endpoints_.reason(), location());
  // Messages of the previous barrier may still be in flight.
  for (int member = 0; member < size(); ++member) {
    wait_for(member, [&] { return !endpoints_.announcing(member); });
  }
  endpoints_.announce_barrier();
  const std::uint64_t turn = ++barriers_;
  for (int member = 0; member < size(); ++member) {
    if (member != rank()) wait_for(member, [&] { return endpoints_.barriers(member) >= turn; });
  }
}

} // namespace triax::p2p
