// SPDX-License-Identifier: Apache-2.0
// Products of attention tiles in fp32, without tensor cores. The lanes hold the same elements as with mma_16x8x16().
#pragma once

#include "attention_config.hpp"
#include "fragment.cuh"

namespace triax::kernels_fused {

/// mma_abt() in fp32.
template <class Config>
__device__ __forceinline__ void fma_abt(Fragment<Config::kMmaM, Config::kStreamedRows>& out, const float* a,
                                        const float* b, float sign) {
  const int lane = lane_index();
  // The lane computes rows lane / 4 (+ 8) and columns 2 (lane % 4) (+ 1) of each 16 x 8, as mma does.
  const float *a_rows = a + Config::offset(lane / 4, 0), *b_rows = b + Config::offset(lane % 4 * 2, 0);
#pragma unroll 2
  for (int k = 0; k < Config::kHeadDim; k += 4) {
    float4 a_regs[2 * Config::kMmaM];
#pragma unroll
    for (int row = 0; row < 2 * Config::kMmaM; ++row) {
      float4& x = a_regs[row];
      x = *reinterpret_cast<const float4*>(a_rows + Config::offset(8 * row, k));
      x = make_float4(x.x * sign, x.y * sign, x.z * sign, x.w * sign);
    }
#pragma unroll
    for (int n = 0; n < Config::kStreamedRows / 8; ++n) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const auto y = *reinterpret_cast<const float4*>(b_rows + Config::offset(8 * n + odd, k));
#pragma unroll
        for (int row = 0; row < 2 * Config::kMmaM; ++row) {
          const float4 x = a_regs[row];
          float& sum = at(out, row, 2 * n + odd);
          sum += x.x * y.x;
          sum += x.y * y.y;
          sum += x.z * y.z;
          sum += x.w * y.w;
        }
      }
    }
  }
}

/// mma_ab() in fp32.
template <class Config>
__device__ __forceinline__ void fma_ab(Fragment<Config::kMmaM, Config::kBlockColumns>& out,
                                       const Fragment<Config::kMmaM, Config::kStreamedRows>& a, const float* b) {
  const int lane = lane_index();
#pragma unroll
  for (int k = 0; k < Config::kStreamedRows; ++k) { // in lane k % 8 / 2 of the four lanes that share a row
    const int from = lane / 4 * 4 + k % 8 / 2;
    float a_regs[2 * Config::kMmaM];
#pragma unroll
    for (int row = 0; row < 2 * Config::kMmaM; ++row)
      a_regs[row] = __shfl_sync(kFullMask, at(a, row, k / 8 * 2 + k % 2), from);
#pragma unroll
    for (int n = 0; n < Config::kBlockColumns / 8; ++n) {
      const auto b_regs = *reinterpret_cast<const float2*>(b + Config::offset(k, 8 * n + lane % 4 * 2));
#pragma unroll
      for (int row = 0; row < 2 * Config::kMmaM; ++row) {
        at(out, row, 2 * n) += a_regs[row] * b_regs.x;
        at(out, row, 2 * n + 1) += a_regs[row] * b_regs.y;
      }
    }
  }
}

} // namespace triax::kernels_fused
