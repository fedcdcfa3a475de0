// SPDX-License-Identifier: Apache-2.0
// The programming model of the row kernels: a team of lanes works on a row, in phases.
//
//   typename Team::template Each<float> sum;                       // one value per lane
//   team.lanes([&](unsigned lane) { sum[lane] = ...; });           // a phase: every lane runs it
//   const float all = team.all(sum, Plus{});                       // result on all lanes; fixed order
//
// On a GPU, a team is a warp or a block (device_teams.cuh), and a lane is a thread, which stores only its own value of
// Each. In tests, the host runs the lanes of a team one after another (tests/host_teams.hpp), with the same order of
// all sums. So tests run the same code as GPUs.
//
// Threads: pure functions of their team. Blocking: on a GPU, the lanes wait for each other in all().
#pragma once

#include <cmath>
#include <cstdint>

// Functions that only kernels call; for nvcc, device functions.
#if defined(__CUDACC__)
#define TRIAX_LANE __device__ __forceinline__
#define TRIAX_UNROLL _Pragma("unroll")
#define TRIAX_UNROLL_BY_4 _Pragma("unroll 4")
#define TRIAX_UNROLL_BY_16 _Pragma("unroll 16")
#else
#define TRIAX_LANE inline
#define TRIAX_UNROLL
#define TRIAX_UNROLL_BY_4
#define TRIAX_UNROLL_BY_16
#endif

namespace triax::kernels_fused {

inline constexpr unsigned kWarp = 32, kBlock = 256; // lanes per team

struct Plus {
  template <class T>
  TRIAX_LANE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  TRIAX_LANE float operator()(float a, float b) const { return a < b ? b : a; }
};

/// Sums that are reduced together.
struct TwoSums {
  float one = 0, two = 0;
};
TRIAX_LANE TwoSums operator+(TwoSums a, TwoSums b) {
  return {a.one + b.one, a.two + b.two};
}

/// The sum of exp(x - max) over some x, and their maximum. Two of them can be combined without reading any x again
/// (Milakov & Gimelshein 2018).
struct ExpSum {
  float max = -INFINITY, sum = 0;
};
struct JoinExpSums {
  TRIAX_LANE ExpSum operator()(ExpSum a, ExpSum b) const {
    const float max = a.max < b.max ? b.max : a.max;
    if (max == -INFINITY) return {max, a.sum + b.sum}; // no x, or only -infinity
    return {max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
  }
};

} // namespace triax::kernels_fused
