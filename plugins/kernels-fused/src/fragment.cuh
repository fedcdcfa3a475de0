// SPDX-License-Identifier: Apache-2.0
// Fragments: tiles of fp32 numbers that the 32 lanes of a warp hold in registers, as mma_16x8x16() leaves them.
//
// A lane holds 2 x 2 elements of each 16 x 8: rows lane / 4 and lane / 4 + 8, columns 2 (lane % 4) and the next.
//
//   column     0  1   2  3   4  5   6  7
//   row 0    | lane 0 lane 1 lane 2 lane 3 |  reg 0, 1
//   row 1    | lane 4 lane 5 lane 6 lane 7 |
//   ...
//   row 7    | lane 28 ...         lane 31 |
//   row 8    | lane 0 lane 1 lane 2 lane 3 |  reg 2, 3
//   ...
//
// fragment[mma_m][mma_n][reg] is an element of the 16 x 8 at row 16 mma_m and column 8 mma_n. at() numbers the same
// elements by the lane's rows, which are 8 apart, and its columns.
#pragma once

#include "reduce.cuh"
#include "warp.cuh"

namespace triax::kernels_fused {

/// kMmaM strips of 16 rows, and kN columns.
template <int kMmaM, int kN>
using Fragment = float[kMmaM][kN / 8][4];

/// The lane's element in the row-th of its 2 * kMmaM rows, and the column-th of its kN / 4 columns.
/// @{
template <int kMmaM, int kTiles>
__device__ __forceinline__ float& at(float (&fragment)[kMmaM][kTiles][4], int row, int column) {
  return fragment[row / 2][column / 2][row % 2 * 2 + column % 2];
}
template <int kMmaM, int kTiles>
__device__ __forceinline__ float at(const float (&fragment)[kMmaM][kTiles][4], int row, int column) {
  return fragment[row / 2][column / 2][row % 2 * 2 + column % 2];
}
/// @}

/// fragment[mma_m][mma_n][reg], and its row and column in the warp's tile.
struct FragmentIndex {
  int mma_m, mma_n, reg;
  __device__ __forceinline__ int row() const { return 16 * mma_m + lane_index() / 4 + 8 * (reg / 2); }
  __device__ __forceinline__ int column() const { return 8 * mma_n + lane_index() % 4 * 2 + reg % 2; }
};
/// Calls body(index) for each element of the lane, of kMmaM strips and kN columns.
template <int kMmaM, int kN, class Body>
__device__ __forceinline__ void for_each_element(Body body) {
#pragma unroll
  for (int i = 0; i < kMmaM * kN / 2; ++i) body(FragmentIndex{i / (kN / 2), i / 4 % (kN / 8), i % 4});
}

/// Over the four lanes that hold a row.
template <class Op>
__device__ __forceinline__ float quad_reduce(float value, Op op) {
  value = op(value, shuffle_xor(value, 1));
  return op(value, shuffle_xor(value, 2));
}

} // namespace triax::kernels_fused
