// SPDX-License-Identifier: Apache-2.0
// Teams and their launcher on the host. The lanes of a phase run one after another; values that lanes exchange between
// phases are reduced in the GPU's order.
//
// Threads: one. Ownership: none. Blocking: computes in the call. Errors: none. With `backwards`, lanes, rows and items
// run from last to first. A result that depends on their order, which a GPU does not guarantee, then differs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "lanes.hpp"

namespace triax::kernels_fused {

template <unsigned kOfTeam>
class HostTeam {
 public:
  static constexpr unsigned kLanes = kOfTeam;

  explicit HostTeam(bool backwards) : backwards_(backwards) {}

  template <class T>
  struct Each {
    std::unique_ptr<std::array<T, kLanes>> of = std::make_unique<std::array<T, kLanes>>();
    T& operator[](unsigned lane) { return (*of)[lane]; }
    const T& operator[](unsigned lane) const { return (*of)[lane]; }
  };

  template <class Phase>
  void lanes(Phase phase) {
    for (unsigned i = 0; i < kLanes; ++i) phase(backwards_ ? kLanes - 1 - i : i);
  }

  template <class T, class Op>
  T all(Each<T>& each, Op op) {
    T joined{};
    for (unsigned warp = 0; warp < kLanes / kWarp; ++warp) {
      const T value = of_warp(each.of->data() + warp * kWarp, op);
      joined = warp == 0 ? value : op(joined, value);
    }
    return joined;
  }

  template <class Make>
  auto from_first(Make make) {
    return make();
  }

  template <class T, class Use>
  void shared(Each<T>& each, Use use) {
    lanes([&](unsigned lane) { use(lane, static_cast<const T*>(each.of->data())); });
  }

 private:
  template <class T, class Op>
  static T of_warp(const T* of_lanes, Op op) {
    std::array<T, kWarp> now{};
    for (unsigned lane = 0; lane < kWarp; ++lane) now[lane] = of_lanes[lane];
    for (unsigned distance = 16; distance > 0; distance /= 2) {
      const std::array<T, kWarp> before = now;
      for (unsigned lane = 0; lane < kWarp; ++lane) now[lane] = op(before[lane], before[lane ^ distance]);
    }
    return now[0];
  }

  bool backwards_;
};

class HostLauncher {
 public:
  HostLauncher(std::byte* scratch, bool backwards) : scratch_(scratch), backwards_(backwards) {}

  std::byte* scratch() const { return scratch_; }

  template <unsigned kLanes, class Body>
  void teams(const Body& body, std::int64_t rows) const {
    HostTeam<kLanes> team(backwards_);
    for (std::int64_t i = 0; i < rows; ++i) body(team, backwards_ ? rows - 1 - i : i);
  }
  template <class Body>
  void items(const Body& body, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) body(backwards_ ? count - 1 - i : i);
  }

 private:
  std::byte* scratch_;
  bool backwards_;
};

} // namespace triax::kernels_fused
