// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes: what a thread loads, computes on in f32, and stores at a time.
//
// A thread gets the same elements whether or not memory is aligned: in rows that are not, and where a row ends within
// a vector, elements are loaded one by one. So a view's alignment changes no bit of a result.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernel_sizes.hpp"
#include "triax/cuda/rounding.hpp"
#include "triax/tensor.hpp"

namespace triax::kernels_fused {

/// A vector as it is in memory.
template <class T>
struct alignas(16) Vec16 {
  std::uint32_t words[4];
};

/// The elements of a vector in f32.
template <class T>
struct Floats {
  float values[kVec<T>];
  __device__ __forceinline__ float& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const float& operator[](int i) const { return values[i]; }
};

template <class T>
__device__ __forceinline__ float to_float(T x) {
  if constexpr (std::is_same_v<T, F16>) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
    return out;
  } else {
    return cuda::value_of(x);
  }
}

/// Rounds to nearest, ties to even. Does not keep a NaN's payload.
template <class T>
__device__ __forceinline__ T from_float(float value) {
  if constexpr (std::is_same_v<T, F16>) {
    T out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
    return out;
  } else if constexpr (std::is_same_v<T, Bf16>) {
    T out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
    return out;
  } else {
    return value;
  }
}

/// Two 16-bit elements, `low` in the lower half of the word.
template <class T>
__device__ __forceinline__ std::uint32_t pair_from_floats(float low, float high) {
  std::uint32_t out;
  if constexpr (std::is_same_v<T, F16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  }
  return out;
}

template <class T>
__device__ __forceinline__ Floats<T> to_floats(Vec16<T> vec) {
  Floats<T> out;
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) {
    if constexpr (cuda::kHalf<T>) {
      T element;
      element.bits = static_cast<std::uint16_t>(vec.words[i / 2] >> (16 * (i % 2)));
      out[i] = to_float(element);
    } else {
      out[i] = std::bit_cast<float>(vec.words[i]);
    }
  }
  return out;
}

template <class T>
__device__ __forceinline__ Vec16<T> from_floats(const Floats<T>& floats) {
  Vec16<T> out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (cuda::kHalf<T>) {
      out.words[i] = pair_from_floats<T>(floats[2 * i], floats[2 * i + 1]);
    } else {
      out.words[i] = std::bit_cast<std::uint32_t>(floats[i]);
    }
  }
  return out;
}

/// Stores 8 or 16 bytes in one instruction: nvcc splits the copy of a struct, but not these intrinsics.
__device__ __forceinline__ void store_words(void* to, const std::uint32_t (&words)[2]) {
  __stwb(static_cast<uint2*>(to), make_uint2(words[0], words[1]));
}
__device__ __forceinline__ void store_words(void* to, const std::uint32_t (&words)[4]) {
  __stwb(static_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
}

/// Number of elements of the vector at element `column` of a row of n.
template <class T>
__device__ __forceinline__ int valid_elements(std::int64_t n, std::int64_t column) {
  const std::int64_t left = n - column;
  return left < kVec<T> ? static_cast<int>(left) : kVec<T>;
}

/// Loads a whole vector, at a multiple of 16 bytes.
template <class T>
__device__ __forceinline__ Vec16<T> load_vec(const T* from) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  return {{words.x, words.y, words.z, words.w}};
}
/// `vectorized`: all elements are valid, and the vector is at a multiple of 16 bytes. Else loads the first `valid`
/// elements; the others are 0.
template <class T>
__device__ __forceinline__ Vec16<T> load_vec(const T* from, int valid, bool vectorized) {
  if (vectorized) return load_vec(from);
  Vec16<T> out{};
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) {
    if (i >= valid) continue;
    if constexpr (cuda::kHalf<T>) {
      out.words[i / 2] |= static_cast<std::uint32_t>(from[i].bits) << (16 * (i % 2));
    } else {
      out.words[i] = std::bit_cast<std::uint32_t>(from[i]);
    }
  }
  return out;
}
template <class T>
__device__ __forceinline__ Floats<T> load(const T* from, int valid, bool vectorized) {
  return to_floats(load_vec(from, valid, vectorized));
}
/// The same for memory that no thread of the kernel writes: the load may move before earlier stores.
template <class T>
__device__ __forceinline__ Floats<T> load_readonly(const T* from, int valid, bool vectorized) {
  if (!vectorized) return load(from, valid, false);
  const uint4 words = __ldg(reinterpret_cast<const uint4*>(from));
  return to_floats(Vec16<T>{{words.x, words.y, words.z, words.w}});
}

template <class T>
__device__ __forceinline__ void store(T* to, const Floats<T>& floats, int valid, bool vectorized) {
  if (vectorized) {
    store_words(to, from_floats(floats).words);
  } else {
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) {
      if (i < valid) to[i] = from_float<T>(floats[i]);
    }
  }
}

/// Whether all of these views are at multiples of 16 bytes. An empty view counts as aligned.
inline bool aligned_views(std::initializer_list<const TensorView*> views) {
  for (const TensorView* view : views) {
    if (reinterpret_cast<std::uintptr_t>(view->data()) % 16 != 0) return false;
  }
  return true;
}
/// Whether every row of n elements of T consists of whole vectors at multiples of 16 bytes, in all of these views.
template <class T>
bool aligned_rows(std::int64_t n, std::initializer_list<const TensorView*> views) {
  return n % kVec<T> == 0 && aligned_views(views);
}

} // namespace triax::kernels_fused
