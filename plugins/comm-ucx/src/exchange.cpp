#include "exchange.hpp"

#include "triax/error.hpp"

namespace comm_ucx {

void Exchange::make_room(std::size_t transfers) {
  while (placed_.size() < transfers) placed_.emplace_back();
}

void Exchange::add(const Transfer& transfer, std::uint64_t number) {
  Placed& placed = placed_[count_++];
  placed.transfer = transfer;
  placed.number = number;
}

Tag Exchange::tag(const Placed& placed) const noexcept {
  const Transfer& transfer = placed.transfer;
  const int source = transfer.direction == Direction::send ? links_.index() : transfer.peer;
  return transfer_tag(links_.number(), source, transfer.channel, transfer.view.dtype(), placed.number);
}

void Exchange::launch() noexcept {
  for (const Direction direction : {Direction::receive, Direction::send}) {
    for (std::size_t i = 0; i < count_; ++i) {
      Placed& placed = placed_[i];
      const Transfer& transfer = placed.transfer;
      if (transfer.direction != direction) continue;
      if (direction == Direction::send) {
        send(placed.request, transfer.peer, transfer.view.data(), transfer.view.bytes(), tag(placed));
      } else {
        receive(placed.request, transfer.peer, transfer.view.data(), transfer.view.bytes(), tag(placed));
      }
    }
  }
}

bool Exchange::run() noexcept {
  if (under_way() > 0) return false;
  for (std::size_t i = 0; i < count_; ++i) {
    const Placed& placed = placed_[i];
    if (placed.transfer.direction == Direction::send) continue;
    const bool whole = placed.request.status == UCS_OK && placed.request.length == placed.transfer.view.bytes();
    if (!whole) mismatch(placed, placed.request.length, placed.transfer.view.dtype());
  }
  return true;
}

/// A send of another type has another tag: it waits where its receive does not find it.
void Exchange::examine() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    const Placed& placed = placed_[i];
    Tag found = 0;
    std::size_t bytes = 0;
    if (!placed.request.receives || !placed.request.open()) continue;
    if (links_.transport().waiting(tag(placed), kAnyType, found, bytes)) {
      return mismatch(placed, bytes, type_of(found));
    }
  }
}

void Exchange::mismatch(const Placed& placed, std::size_t bytes, DType dtype) noexcept {
  const TensorView& view = placed.transfer.view;
  links_.abort(text("group {}, channel {}: rank {} sends {} {} where rank {} receives {} {}", links_.id(),
                    placed.transfer.channel, links_.rank(placed.transfer.peer), bytes / bytes_of(dtype), name_of(dtype),
                    links_.rank(links_.index()), view.elements(), name_of(view.dtype())));
}

} // namespace comm_ucx
