// A set of sends and receives, straight between the members' buffers. Each carries its number on its edge, given when
// it was posted, so that the k-th send meets the k-th receive whatever streams they are on. Of device memory each is a
// flow.
//
// Threads, ownership, blocking: as for calls. A send and a receive that differ in size or type abort the group.
#pragma once

#include <deque>

#include "call.hpp"
#include "flow.hpp"

namespace comm_ucx {

/// A transfer and its number on its edge, from 0.
struct Placed {
  Transfer transfer;
  std::uint64_t number = 0;
  Request requests[Flow::kPlaces]; // one, but for a flow
  Flow flow;
};

class Exchange final : public Call {
 public:
  using Call::Call;

  /// Makes room for so many transfers; what is under way stays where it is.
  void make_room(std::size_t transfers);
  void clear() noexcept { count_ = 0; }
  void add(const Transfer& transfer, std::uint64_t number);
  Event start() { return begin(); }
  /// Pinned memory that the transfers take, and where it is; before start().
  std::size_t room() const noexcept;
  void set_places(std::byte* places) noexcept;
  /// Of device memory that UCX carries itself.
  void go_direct() noexcept { side_ = Side::device; }

 private:
  void launch() noexcept override;
  bool run() noexcept override;
  void examine() noexcept override;
  std::size_t requests() const noexcept override { return count_ * Flow::kPlaces; }
  Request& request_at(std::size_t index) noexcept override {
    return placed_[index / Flow::kPlaces].requests[index % Flow::kPlaces];
  }
  bool run_flows() noexcept;
  void other_length(const Flow& flow, std::size_t bytes, bool more) noexcept override;
  Tag tag(const Placed& placed) const noexcept;
  void mismatch(const Placed& placed, std::size_t bytes, DType dtype, bool more = false) noexcept;

  std::deque<Placed> placed_; // grows without moving: UCX knows the requests by their place
  std::size_t count_ = 0;
  bool staged_ = false;
  Side side_ = Side::host;
};

} // namespace comm_ucx
