// SPDX-License-Identifier: Apache-2.0
// The machine for the attention steps on GPUs: one thread (sm_80 and later).
//
// Threads: one object per thread. All threads of a warp call a warp function together, and all threads of the block
// call sync(). Blocking: only for other threads of the block.
//
// Uses instructions of PTX ISA 7.0 for sm_80: mma.m16n8k16, ldmatrix, cp.async.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "triax/cuda/rounding.hpp"

namespace triax::kernels_fused {

extern __shared__ uint4 attention_memory[];

class GpuMachine {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int lane() const { return static_cast<int>(threadIdx.x % 32); }
  __device__ int warp() const { return static_cast<int>(threadIdx.x / 32); }
  __device__ std::int64_t warps() const { return blockDim.x / 32; }
  __device__ std::int64_t block() const { return blockIdx.x; }
  __device__ std::int64_t blocks() const { return gridDim.x; }
  __device__ std::byte* shared() const { return reinterpret_cast<std::byte*>(attention_memory); }
  __device__ void sync() const { __syncthreads(); }

  // Warp functions.
  __device__ float from_lane(float value, int lane) const { return __shfl_sync(kAll, value, lane); }
  __device__ float from_neighbour(float value, int distance) const { return __shfl_xor_sync(kAll, value, distance); }
  __device__ bool any(bool value) const { return __any_sync(kAll, value) != 0; }

  /// Loads four 8 x 8 matrices of 16-bit elements: lane 8 m + r passes the address of row r of matrix m.
  __device__ void load_matrices(std::uint32_t (&to)[4], const void* row) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(row)));
  }
  __device__ void load_matrices_transposed(std::uint32_t (&to)[4], const void* row) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(row)));
  }
  /// d (16 x 8) += a (16 x 16) b (16 x 8).
  template <class T>
  __device__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) const {
    if constexpr (std::is_same_v<T, Bf16>) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
  }

  // Asynchronous copies from global to shared memory, which wait_copies() waits for; zeros if not `there`.
  __device__ void copy_piece(void* to, const void* from, bool there) const {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(global(from)),
                 "r"(there ? 16 : 0)
                 : "memory");
  }
  __device__ void copy_word(void* to, const void* from, bool there) const {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address(to)), "l"(global(from)),
                 "r"(there ? 4 : 0)
                 : "memory");
  }
  /// Waits for the thread's own copies; sync() makes them visible to all threads.
  __device__ void wait_copies() const { asm volatile("cp.async.wait_all;" ::: "memory"); }

  /// To base e for f32, to base 2 for 16-bit types.
  template <class T>
  __device__ float exponential(float x) const {
    if constexpr (std::is_same_v<T, float>) {
      return expf(x);
    } else {
      float y;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
      return y;
    }
  }
  __device__ float logarithm(float x) const { return logf(x); }

  template <class T>
  __device__ float value(T x) const {
    return cuda::value_of(x);
  }
  __device__ float value(F16 x) const { return __half2float(__ushort_as_half(x.bits)); }

  /// `one` in the lower half.
  template <class T>
  __device__ std::uint32_t pack(float one, float two) const {
    if constexpr (std::is_same_v<T, Bf16>) {
      const __nv_bfloat162 both = __floats2bfloat162_rn(one, two);
      return reinterpret_cast<const std::uint32_t&>(both);
    } else {
      const __half2 both = __floats2half2_rn(one, two);
      return reinterpret_cast<const std::uint32_t&>(both);
    }
  }
  template <class T>
  __device__ void store_pair(T* to, float one, float two) const {
    if constexpr (std::is_same_v<T, float>) {
      *reinterpret_cast<float2*>(to) = make_float2(one, two);
    } else {
      *reinterpret_cast<std::uint32_t*>(to) = pack<T>(one, two);
    }
  }
  template <class T>
  __device__ void store_one(T* to, float value) const {
    if constexpr (std::is_same_v<T, float>) {
      *to = value;
    } else {
      to->bits = static_cast<std::uint16_t>(pack<T>(value, 0));
    }
  }

 private:
  static constexpr unsigned kAll = 0xFFFFFFFFu;
  __device__ static unsigned address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
  }
  __device__ static std::size_t global(const void* pointer) { return __cvta_generic_to_global(pointer); }
};

} // namespace triax::kernels_fused
