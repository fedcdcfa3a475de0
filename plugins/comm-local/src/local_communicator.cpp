// SPDX-License-Identifier: Apache-2.0
#include "local_communicator.hpp"

#include <algorithm>

#include "triax/poll_pause.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::comm_local {

namespace {

/// Calls of each kind at the start. A rank needs more only if it reduces the buckets of more layers at once.
constexpr std::size_t kCalls = 64;

} // namespace

LocalCommunicator::LocalCommunicator(const Group& group, std::shared_ptr<GroupState> group_state, Device& device)
    : Communicator(group), group_state_(*group_state), device_(device), pool_(std::make_shared<Pool>()) {
  pool_->group_state = std::move(group_state);
  add_calls(pool_->collectives, kCalls);
  add_calls(pool_->exchanges, kCalls);
  device_.add_source(*this);
}

template <class Some>
void LocalCommunicator::add_calls(std::vector<std::unique_ptr<Some>>& calls, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) calls.push_back(std::make_unique<Some>(group_state_, rank()));
  reserve(0);
}

/// Gives every pooled exchange the capacity of the largest one so far: any of them may be used for the next.
void LocalCommunicator::reserve(std::size_t transfers) {
  most_transfers_ = std::max(most_transfers_, transfers);
  for (const auto& call : pool_->exchanges) call->transfers().reserve(most_transfers_);
}

LocalCommunicator::~LocalCommunicator() {
  device_.remove_source(*this);
  bool queued = false;
  for_queued([&](Call&) { queued = true; });
  if (!queued) {
    group_state_.leave(rank());
    return;
  }
  group_state_.leave_early(rank());
  for_queued([&](Call& call) { call.keep_alive(pool_); });
}

template <class Body>
void LocalCommunicator::for_queued(Body body) {
  for (const auto& call : pool_->collectives)
    if (call->queued()) body(*call);
  for (const auto& call : pool_->exchanges)
    if (call->queued()) body(*call);
}

template <class Some>
Some& LocalCommunicator::idle(std::vector<std::unique_ptr<Some>>& calls) {
  for (const auto& call : calls)
    if (call->reusable()) return *call;
  const std::size_t first = calls.size();
  add_calls(calls, first); // double the pool: other ranks' timing decides how many calls are in flight
  return *calls[first];
}

void LocalCommunicator::progress() noexcept {
  if (!group_state_.aborted()) return;
  for_queued([](Call& call) { call.fail_when_quiet(); });
}

void LocalCommunicator::abort(std::string_view why) noexcept {
  group_state_.abort(text("rank {} aborted group {}: {}", group_state_.world_rank(rank()), group_state_.id(), why));
}

Work LocalCommunicator::do_collective(const Collective& collective, const TensorView& in, const TensorView& out,
                                      Stream& stream, ActionId action) {
  if (group_state_.aborted()) return failed_post(group_state_.reason(), action);
  CollectiveCall& call = idle(pool_->collectives);
  const Event event = call.start(collective, in, out, ++posted_);
  count(payload_of(collective));
  stream.post(call);
  return {event, action};
}

Work LocalCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  if (group_state_.aborted()) return failed_post(group_state_.reason(), action);
  Exchange& call = idle(pool_->exchanges);
  if (transfers.size() > most_transfers_) reserve(transfers.size());
  call.transfers().clear();
  for (const Transfer& transfer : transfers) {
    Port& end = port(transfer);
    call.transfers().push_back({transfer, end.edge, end.next++});
    const std::uint64_t bytes = transfer.view.bytes();
    count(transfer.direction == Direction::send ? Payload{bytes, 0} : Payload{0, bytes});
  }
  const Event event = call.start();
  stream.post(call);
  return {event, action};
}

LocalCommunicator::Port& LocalCommunicator::port(const Transfer& transfer) {
  for (Port& port : ports_) {
    if (port.direction == transfer.direction && port.peer == transfer.peer && port.channel == transfer.channel) {
      return port;
    }
  }
  const bool send = transfer.direction == Direction::send;
  Edge& edge = group_state_.edge(send ? rank() : transfer.peer, send ? transfer.peer : rank(), transfer.channel);
  return ports_.emplace_back(Port{transfer.direction, transfer.peer, transfer.channel, &edge, 0});
}

void LocalCommunicator::barrier(Deadline deadline) {
  const auto location = [&] { return text("barrier of group {}", group_state_.id()); };
  if (group_state_.aborted()) throw Error(group_state_.reason(), location());
  WaitDeadline until(deadline);
  const std::uint64_t turn = group_state_.barriers(rank()).fetch_add(1, std::memory_order_acq_rel) + 1;
  PollPause pause;
  for (int peer = 0; peer < size(); ++peer) {
    const auto here = [&] { return group_state_.barriers(peer).load(std::memory_order_acquire) >= turn; };
    while (!here()) {
      if (group_state_.aborted()) throw Error(group_state_.reason(), location());
      device_.abort_flag().check();
      if (group_state_.left(peer) && !here())
        throw Error(text("rank {} has left", group_state_.world_rank(peer)), location());
      if (until.passed()) {
        throw Error(text("timed out waiting for rank {}", group_state_.world_rank(peer)), location(),
                    "the rank may be slow or lost; train.stall_timeout_s sets the timeout");
      }
      pause.after_poll(device_.progress());
    }
  }
}

} // namespace triax::comm_local
