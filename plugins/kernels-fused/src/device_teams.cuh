// SPDX-License-Identifier: Apache-2.0
// Teams of GPU threads, and launchers of the bodies that are written for teams (lanes.hpp).
//
// Threads: the rank's main thread launches. Blocking: never. Errors: Error with the operation, if CUDA rejects the
// launch.
#pragma once

#include "lanes.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::kernels_fused {

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

/// A butterfly reduction within each warp; then the results of the warps are combined in order.
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
    value = of_first_lane(value); // combining in either order may differ in bits
    if constexpr (kLanes == kWarp) {
      return value;
    } else {
      return over_warps(value, op);
    }
  }

  /// Computes a value on the first lane, and returns it to all lanes of a block.
  template <class Make>
  TRIAX_LANE auto from_first(Make make) {
    static_assert(kLanes == kBlock);
    using T = decltype(make());
    __shared__ alignas(T) std::byte memory[sizeof(T)];
    T* made = reinterpret_cast<T*>(memory);
    __syncthreads(); // the previous call may still read
    if (threadIdx.x == 0) *made = make();
    __syncthreads();
    return *made;
  }
  /// use(lane, values): a phase in which each lane can read the values of all lanes of a block.
  template <class T, class Use>
  TRIAX_LANE void shared(Each<T>& each, Use use) {
    static_assert(kLanes == kBlock);
    __shared__ alignas(T) std::byte memory[kLanes * sizeof(T)];
    T* of_lanes = reinterpret_cast<T*>(memory);
    __syncthreads(); // the previous call may still read
    of_lanes[threadIdx.x] = each.mine;
    __syncthreads();
    use(threadIdx.x, of_lanes);
  }

 private:
  /// Two buffers alternate between calls. A lane that writes one has passed the barrier of the previous call, and all
  /// lanes have finished reading this buffer by then.
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

/// At least two blocks per multiprocessor. Without this bound, nvcc spills a few bytes to fit more blocks.
template <unsigned kLanes, class Body>
__global__ void __launch_bounds__(kBlock, 2) run_teams(const __grid_constant__ Body body, std::int64_t rows) {
  constexpr unsigned kTeams = kBlock / kLanes; // per block
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

/// Launches bodies on the GPU; tests have a launcher for the host.
class DeviceLauncher {
 public:
  DeviceLauncher(Op op, const OpContext& context) : op_(op), context_(context) {}

  std::byte* scratch() const { return context_.scratch.data(); }

  /// body(team, row) for each row, by a team of kLanes threads.
  template <unsigned kLanes, class Body>
  void teams(const Body& body, std::int64_t rows) const {
    if (rows == 0) return;
    constexpr std::int64_t kTeams = kBlock / kLanes;
    cuda::Launch(op_, cuda::grid_of_rows((rows + kTeams - 1) / kTeams), context_)(run_teams<kLanes, Body>, body, rows);
  }
  /// body(item) for each item, by one thread.
  template <class Body>
  void items(const Body& body, std::int64_t count) const {
    if (count == 0) return;
    cuda::Launch(op_, cuda::grid_of_elements(count), context_)(run_items<Body>, body, count);
  }

 private:
  Op op_;
  const OpContext& context_;
};

} // namespace triax::kernels_fused
