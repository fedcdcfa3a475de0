// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "collective.hpp"
#include "triax/error.hpp"

namespace triax::comm_ucx {

void Exchange::reserve(std::size_t transfers) {
  while (placed_.size() < transfers) placed_.emplace_back();
}

void Exchange::add(const Transfer& transfer, std::uint64_t number) {
  Placed& placed = placed_[count_++];
  placed.transfer = transfer;
  placed.number = number;
}

Tag Exchange::tag(const Placed& placed) const noexcept {
  const Transfer& transfer = placed.transfer;
  const int source = transfer.direction == Direction::send ? endpoints_.index() : transfer.peer;
  return transfer_tag(endpoints_.number(), source, transfer.channel, transfer.view.dtype(), placed.number);
}

std::size_t Exchange::staging_bytes() const noexcept {
  std::size_t all = 0;
  for (std::size_t i = 0; i < count_; ++i)
    all += StagedMessage::staging_bytes(placed_[i].transfer.view.bytes(), kStagedPiece);
  return all;
}

void Exchange::set_buffers(std::byte* buffers) noexcept {
  staged_ = true;
  for (std::size_t i = 0; i < count_; ++i) {
    Placed& placed = placed_[i];
    StagedMessage& flow = placed.flow = {};
    flow.device = placed.transfer.view.as<std::byte>();
    flow.bytes = placed.transfer.view.bytes();
    flow.piece = kStagedPiece;
    flow.buffers = buffers;
    flow.tag = tag(placed);
    flow.requests = placed.requests;
    flow.first = flow.last = placed.transfer.peer;
    buffers += StagedMessage::staging_bytes(flow.bytes, flow.piece);
  }
}

void Exchange::launch() noexcept {
  if (staged_) return;
  for (const Direction direction : {Direction::receive, Direction::send}) {
    for (std::size_t i = 0; i < count_; ++i) {
      Placed& placed = placed_[i];
      const Transfer& transfer = placed.transfer;
      if (transfer.direction != direction) continue;
      if (direction == Direction::send) {
        send(placed.requests[0], transfer.peer, transfer.view.data(), transfer.view.bytes(), tag(placed), side_);
      } else {
        receive(placed.requests[0], transfer.peer, transfer.view.data(), transfer.view.bytes(), tag(placed), side_);
      }
    }
  }
}

/// Advances all flows: the peer may be waiting for any of them.
bool Exchange::run_flows() noexcept {
  bool all = true;
  for (std::size_t i = 0; i < count_ && !endpoints_.aborted(); ++i) {
    Placed& placed = placed_[i];
    all &= placed.transfer.direction == Direction::send ? push(placed.flow) : pull(placed.flow);
  }
  return all && copies_ended() && in_progress() == 0;
}

bool Exchange::run() noexcept {
  if (staged_) return run_flows();
  if (in_progress() > 0) return false;
  for (std::size_t i = 0; i < count_; ++i) {
    const Placed& placed = placed_[i];
    if (placed.transfer.direction == Direction::send) continue;
    const Request& received = placed.requests[0];
    const bool whole = received.status == UCS_OK && received.length == placed.transfer.view.bytes();
    if (!whole) mismatch(placed, received.length, placed.transfer.view.dtype());
  }
  return true;
}

/// A send of another type has another tag, so its receive never matches it: looks for such a message.
void Exchange::check_messages() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    const Placed& placed = placed_[i];
    Tag found = 0;
    std::size_t bytes = 0;
    const bool open = placed.requests[0].open() || placed.requests[1].open();
    if (placed.transfer.direction == Direction::send || !open) continue;
    if (endpoints_.transport().waiting(tag(placed), kAnyType, found, bytes) && type_of(found) != type_of(tag(placed))) {
      return mismatch(placed, bytes, type_of(found), staged_ && bytes == kStagedPiece);
    }
  }
}

void Exchange::other_length(const StagedMessage& flow, std::size_t bytes, bool more) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (&placed_[i].flow == &flow) mismatch(placed_[i], bytes, placed_[i].transfer.view.dtype(), more);
  }
}

void Exchange::mismatch(const Placed& placed, std::size_t bytes, DType dtype, bool more) noexcept {
  const TensorView& view = placed.transfer.view;
  endpoints_.abort(text("group {}, channel {}: rank {} sends {}{} {} where rank {} receives {} {}", endpoints_.id(),
                        placed.transfer.channel, endpoints_.rank(placed.transfer.peer), bytes / bytes_of(dtype),
                        more ? " or more" : "", name_of(dtype), endpoints_.rank(endpoints_.index()), view.elements(),
                        name_of(view.dtype())));
}

} // namespace triax::comm_ucx
