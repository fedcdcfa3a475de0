// SPDX-License-Identifier: Apache-2.0
// Instructions of sm_80 and later, as functions: mma, ldmatrix and cp.async (PTX ISA 7.0).
//
// GPU threads: ldmatrix and mma are called by all lanes of a warp together. Blocking: cp_async_wait_all() waits for the
// calling thread's copies.
//
// ldmatrix and mma are .aligned: all lanes of a warp must execute the same instruction together. So they are asm
// volatile, although they only compute values: the compiler must not move them to where lanes have diverged.
// ldmatrix also reads memory that the compiler does not see: volatile keeps it after __syncthreads(), and between that
// barrier and the ldmatrix the thread does not store to the elements that it reads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "triax/half.hpp"

namespace triax::kernels_fused {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Loads four 8 x 8 matrices of 16-bit elements: lane 8 m + r passes the address of row r of matrix m.
__device__ __forceinline__ void ldmatrix(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}
__device__ __forceinline__ void ldmatrix_transposed(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}

/// d (16 x 8) += a (16 x 16) b (16 x 8). fragment.cuh shows which elements of d a lane has.
template <class T>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                            std::uint32_t b1) {
  if constexpr (std::is_same_v<T, Bf16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Starts a copy of 16 bytes from global to shared memory; of zeros, and nothing is read, if not `valid`.
__device__ __forceinline__ void cp_async_16(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void cp_async_4(void* to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(valid ? 4 : 0)
               : "memory");
}
/// Waits for the thread's own copies; __syncthreads() then makes them visible to the block.
__device__ __forceinline__ void cp_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

} // namespace triax::kernels_fused
