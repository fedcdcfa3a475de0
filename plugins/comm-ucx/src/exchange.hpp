// A set of sends and receives, straight between the members' buffers. Each carries its number on its edge, given when
// it was posted, so that the k-th send meets the k-th receive whatever streams they are on.
//
// Threads, ownership, blocking: as for calls. A send and a receive that differ in size or type abort the group.
#pragma once

#include <deque>

#include "call.hpp"

namespace comm_ucx {

/// A transfer and its number on its edge, from 0.
struct Placed {
  Transfer transfer;
  std::uint64_t number = 0;
  Request request;
};

class Exchange final : public Call {
 public:
  using Call::Call;

  /// Makes room for so many transfers; what is under way stays where it is.
  void make_room(std::size_t transfers);
  void clear() noexcept { count_ = 0; }
  void add(const Transfer& transfer, std::uint64_t number);
  Event start() { return begin(); }

 private:
  void launch() noexcept override;
  bool run() noexcept override;
  void examine() noexcept override;
  std::size_t requests() const noexcept override { return count_; }
  Request& request_at(std::size_t index) noexcept override { return placed_[index].request; }
  Tag tag(const Placed& placed) const noexcept;
  void mismatch(const Placed& placed, std::size_t bytes, DType dtype) noexcept;

  std::deque<Placed> placed_; // grows without moving: UCX knows the requests by their place
  std::size_t count_ = 0;
};

} // namespace comm_ucx
