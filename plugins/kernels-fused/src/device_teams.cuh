// SPDX-License-Identifier: Apache-2.0
// Teams of the GPU's threads, and the launchers of what is written for teams (lanes.hpp).
//
// Threads: the launcher is the rank's main thread's. Ownership: none. Blocking: never. Errors: Error naming the
// operation, for what CUDA says of a launch.
#pragma once

#include "lanes.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::fused {

template <class T>
TRIAX_LANE T swapped(T value, unsigned distance) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, distance);
}
TRIAX_LANE TwoSums swapped(TwoSums value, unsigned distance) {
  return {swapped(value.one, distance), swapped(value.two, distance)};
}
TRIAX_LANE ExpSum swapped(ExpSum value, unsigned distance) {
  return {swapped(value.max, distance), swapped(value.sum, distance)};
}
template <class T>
TRIAX_LANE T of_first_lane(T value) {
  return __shfl_sync(0xFFFFFFFFu, value, 0);
}
TRIAX_LANE TwoSums of_first_lane(TwoSums value) {
  return {of_first_lane(value.one), of_first_lane(value.two)};
}
TRIAX_LANE ExpSum of_first_lane(ExpSum value) {
  return {of_first_lane(value.max), of_first_lane(value.sum)};
}

/// Inside a warp the halves swap and join; the warps' results are joined in their order.
template <unsigned kOfTeam>
class DeviceTeam {
 public:
  static constexpr unsigned kLanes = kOfTeam;

  template <class T>
  struct Each {
    T mine;
    TRIAX_LANE T& operator[](unsigned) { return mine; }
  };
  template <class Phase>
  TRIAX_LANE void lanes(Phase phase) {
    phase(threadIdx.x % kLanes);
  }
  template <class T, class Op>
  TRIAX_LANE T all(Each<T>& each, Op op) {
    T value = each.mine;
    TRIAX_UNROLL
    for (unsigned distance = 16; distance > 0; distance /= 2) value = op(value, swapped(value, distance));
    value = of_first_lane(value); // joining need not be the same bits both ways round
    if constexpr (kLanes == kWarp) {
      return value;
    } else {
      return over_warps(value, op);
    }
  }

  /// What the first lane makes, for all lanes of a block.
  template <class Make>
  TRIAX_LANE auto from_first(Make make) {
    static_assert(kLanes == kBlock);
    using T = decltype(make());
    __shared__ alignas(T) std::byte memory[sizeof(T)];
    T* made = reinterpret_cast<T*>(memory);
    __syncthreads(); // the call before may still be reading
    if (threadIdx.x == 0) *made = make();
    __syncthreads();
    return *made;
  }
  /// use(lane, values): a phase in which each lane sees what all lanes of a block hold.
  template <class T, class Use>
  TRIAX_LANE void shared(Each<T>& each, Use use) {
    static_assert(kLanes == kBlock);
    __shared__ alignas(T) std::byte memory[kLanes * sizeof(T)];
    T* of_lanes = reinterpret_cast<T*>(memory);
    __syncthreads(); // the call before may still be reading
    of_lanes[threadIdx.x] = each.mine;
    __syncthreads();
    use(threadIdx.x, of_lanes);
  }

 private:
  /// Turns have memory of their own: who writes for one has passed the barrier of the turn before it, and so has
  /// everybody done with the turn before that.
  template <class T, class Op>
  TRIAX_LANE T over_warps(T value, Op op) {
    constexpr unsigned kWarps = kLanes / kWarp;
    __shared__ alignas(T) std::byte memory[2 * kWarps * sizeof(T)];
    T* of_warp = reinterpret_cast<T*>(memory) + turn_ * kWarps;
    turn_ ^= 1u;
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    T joined = of_warp[0];
    for (unsigned warp = 1; warp < kWarps; ++warp) joined = op(joined, of_warp[warp]);
    return joined;
  }

  unsigned turn_ = 0;
};

/// Two blocks of a multiprocessor at least. Where nvcc is not told, it spills a few bytes to fit more.
template <unsigned kLanes, class Body>
__global__ void __launch_bounds__(kBlock, 2) run_teams(const __grid_constant__ Body body, std::int64_t rows) {
  constexpr unsigned kTeams = kBlock / kLanes; // of a block
  DeviceTeam<kLanes> team;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kTeams;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kTeams + threadIdx.x / kLanes; row < rows;
       row += step)
    body(team, row);
}

template <class Body>
__global__ void __launch_bounds__(kBlock) run_items(const __grid_constant__ Body body, std::int64_t count) {
  const cuda::Share share = cuda::my_share();
  for (std::int64_t item = share.first; item < count; item += share.step) body(item);
}

/// What bodies are launched with; tests have another, of the host.
class DeviceLauncher {
 public:
  DeviceLauncher(Op op, const OpContext& context) : op_(op), context_(context) {}

  std::byte* scratch() const { return context_.scratch.data(); }

  /// body(team, row) by a team of kLanes for each row.
  template <unsigned kLanes, class Body>
  void teams(const Body& body, std::int64_t rows) const {
    if (rows == 0) return;
    constexpr std::int64_t kTeams = kBlock / kLanes;
    cuda::Launch(op_, cuda::grid_of_rows((rows + kTeams - 1) / kTeams), context_)(run_teams<kLanes, Body>, body, rows);
  }
  /// body(item) by a thread for each item.
  template <class Body>
  void items(const Body& body, std::int64_t count) const {
    if (count == 0) return;
    cuda::Launch(op_, cuda::grid_of_elements(count), context_)(run_items<Body>, body, count);
  }

 private:
  Op op_;
  const OpContext& context_;
};

} // namespace triax::fused
