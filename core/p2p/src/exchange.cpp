// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "collective.hpp"
#include "triax/error.hpp"

namespace triax::p2p {

void Exchange::reserve(std::size_t transfers) {
  while (pending_.size() < transfers) pending_.emplace_back();
}

void Exchange::add(const Transfer& transfer, std::uint64_t number) {
  PendingTransfer& pending = pending_[count_++];
  pending.transfer = transfer;
  pending.number = number;
}

Tag Exchange::tag(const PendingTransfer& pending) const noexcept {
  const Transfer& transfer = pending.transfer;
  const int source = transfer.direction == Direction::send ? endpoints_.rank() : transfer.peer;
  return transfer_tag(endpoints_.number(), source, transfer.channel, transfer.view.dtype(), pending.number);
}

std::size_t Exchange::staging_bytes() const noexcept {
  std::size_t all = 0;
  for (std::size_t i = 0; i < count_; ++i)
    all += StagedMessage::staging_bytes(pending_[i].transfer.view.bytes(), kStagedPiece);
  return all;
}

void Exchange::set_buffers(std::byte* buffers) noexcept {
  staged_ = true;
  for (std::size_t i = 0; i < count_; ++i) {
    PendingTransfer& pending = pending_[i];
    StagedMessage& flow = pending.flow = {};
    flow.device = pending.transfer.view.as<std::byte>();
    flow.bytes = pending.transfer.view.bytes();
    flow.piece = kStagedPiece;
    flow.buffers = buffers;
    flow.tag = tag(pending);
    flow.requests = pending.requests;
    flow.first = flow.last = pending.transfer.peer;
    buffers += StagedMessage::staging_bytes(flow.bytes, flow.piece);
  }
}

void Exchange::launch() noexcept {
  if (staged_) return;
  for (const Direction direction : {Direction::receive, Direction::send}) {
    for (std::size_t i = 0; i < count_; ++i) {
      PendingTransfer& pending = pending_[i];
      const Transfer& transfer = pending.transfer;
      if (transfer.direction != direction) continue;
      if (direction == Direction::send) {
        send(pending.requests[0], transfer.peer, transfer.view.data(), transfer.view.bytes(), tag(pending), side_);
      } else {
        receive(pending.requests[0], transfer.peer, transfer.view.data(), transfer.view.bytes(), tag(pending), side_);
      }
    }
  }
}

/// Advances all flows: the peer may be waiting for any of them.
bool Exchange::run_flows() noexcept {
  bool all = true;
  for (std::size_t i = 0; i < count_ && !endpoints_.aborted(); ++i) {
    PendingTransfer& pending = pending_[i];
    all &= pending.transfer.direction == Direction::send ? push(pending.flow) : pull(pending.flow);
  }
  return all && copies_ended() && in_progress() == 0;
}

bool Exchange::run() noexcept {
  if (staged_) return run_flows();
  if (in_progress() > 0) return false;
  for (std::size_t i = 0; i < count_; ++i) {
    const PendingTransfer& pending = pending_[i];
    if (pending.transfer.direction == Direction::send) continue;
    const Request& received = pending.requests[0];
    const bool whole = received.status == Status::ok && received.length == pending.transfer.view.bytes();
    if (!whole) mismatch(pending, received.length, pending.transfer.view.dtype());
  }
  return true;
}

/// A send of another type has another tag, so its receive never matches it: looks for such a message.
void Exchange::check_messages() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    const PendingTransfer& pending = pending_[i];
    Tag found = 0;
    std::size_t bytes = 0;
    const bool open = pending.requests[0].open() || pending.requests[1].open();
    if (pending.transfer.direction == Direction::send || !open) continue;
    if (endpoints_.transport().probe(endpoints_.endpoint(pending.transfer.peer), tag(pending), found, bytes) &&
        type_of(found) != type_of(tag(pending))) {
      return mismatch(pending, bytes, type_of(found), staged_ && bytes == kStagedPiece);
    }
  }
}

void Exchange::other_length(const StagedMessage& flow, std::size_t bytes, bool more) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (&pending_[i].flow == &flow) mismatch(pending_[i], bytes, pending_[i].transfer.view.dtype(), more);
  }
}

void Exchange::mismatch(const PendingTransfer& pending, std::size_t bytes, DType dtype, bool more) noexcept {
  const TensorView& view = pending.transfer.view;
  endpoints_.abort(text("group {}, channel {}: rank {} sends {}{} {} where rank {} receives {} {}", endpoints_.id(),
                        pending.transfer.channel, endpoints_.world_rank(pending.transfer.peer), bytes / bytes_of(dtype),
                        more ? " or more" : "", name_of(dtype), endpoints_.world_rank(endpoints_.rank()),
                        view.elements(), name_of(view.dtype())));
}

} // namespace triax::p2p
