// SPDX-License-Identifier: Apache-2.0
#include "local_exchange.hpp"

#include <cstring>

namespace triax::comm_local {

Event Exchange::start() {
  open_ = transfers_.size();
  return begin();
}

bool Exchange::run() noexcept {
  for (PendingTransfer& pending : transfers_) {
    if (pending.complete) continue;
    if (pending.transfer.direction == Direction::send) {
      send(pending);
    } else {
      receive(pending);
    }
    if (pending.complete) --open_;
    if (group_state_.aborted()) return false;
  }
  return open_ == 0;
}

void Exchange::send(PendingTransfer& pending) noexcept {
  Edge& edge = *pending.edge;
  const std::uint64_t number = pending.number;
  if (!pending.published) {
    if (edge.sent.load(std::memory_order_relaxed) != number) return; // an earlier send is not yet published
    if (number - edge.taken.load(std::memory_order_acquire) >= kInFlight) return;
    const TensorView& view = pending.transfer.view;
    edge.sends[number % kInFlight] = {view.as<const std::byte>(), view.elements(), view.dtype()};
    edge.sent.store(number + 1, std::memory_order_release);
    pending.published = true;
  }
  pending.complete =
      is_reached(pending.transfer.peer, [&] { return edge.taken.load(std::memory_order_acquire) > number; });
}

void Exchange::receive(PendingTransfer& pending) noexcept {
  Edge& edge = *pending.edge;
  const std::uint64_t number = pending.number;
  if (edge.taken.load(std::memory_order_relaxed) != number) return; // an earlier receive is not yet complete
  if (!is_reached(pending.transfer.peer, [&] { return edge.sent.load(std::memory_order_acquire) > number; })) return;
  const Edge::Send& send = edge.sends[number % kInFlight];
  if (!fits(pending, send) || !group_state_.begin_access(member_)) return;
  const TensorView& view = pending.transfer.view;
  if (view.bytes() > 0) std::memcpy(view.data(), send.data, view.bytes());
  group_state_.end_access(member_);
  edge.taken.store(number + 1, std::memory_order_release);
  pending.complete = true;
}

bool Exchange::fits(const PendingTransfer& pending, const Edge::Send& send) noexcept {
  const TensorView& view = pending.transfer.view;
  if (send.elements == view.elements() && send.dtype == view.dtype()) return true;
  group_state_.abort(text("group {}, channel {}: rank {} sends {} {} where rank {} receives {} {}", group_state_.id(),
                          pending.transfer.channel, group_state_.world_rank(pending.transfer.peer), send.elements,
                          name_of(send.dtype), group_state_.world_rank(member_), view.elements(),
                          name_of(view.dtype())));
  return false;
}

} // namespace triax::comm_local
