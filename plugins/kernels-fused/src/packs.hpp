// Sixteen bytes of a row: what a lane loads, computes on in f32, and stores at a time.
//
// A lane takes the same elements whether or not memory is aligned: where it is not, or where the row ends within, they
// are loaded one by one. So a view gives the same bits wherever it lies.
//
// Threads: pure functions. Ownership, blocking, errors: none.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "lanes.hpp"
#include "triax/cuda/rounding.hpp"
#include "triax/tensor.hpp"

namespace triax::fused {

template <class T>
inline constexpr int kPack = static_cast<int>(16 / sizeof(T));

/// A pack's numbers. As many as there are in 16 bytes of T.
template <class T>
struct Values {
  float at[kPack<T>];
};

template <class T>
struct alignas(16) Pack {
  T at[kPack<T>];
};

template <class T>
TRIAX_LANE float widened(T x) {
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<T, F16>) {
    float out = 0;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
    return out;
  }
#endif
  return cuda::value_of(x);
}

/// To nearest, ties to even, as everywhere; of a NaN the GPU keeps no payload.
template <class T>
TRIAX_LANE T narrowed(float value) {
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<T, F16>) {
    T out{};
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
    return out;
  } else if constexpr (std::is_same_v<T, Bf16>) {
    T out{};
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(value));
    return out;
  }
#endif
  return cuda::rounded<T>(value);
}

/// Whether every row of n elements of T begins at a multiple of 16 bytes, in all of these. A view that is not given
/// is no obstacle.
template <class T>
bool packed_rows(std::int64_t n, std::initializer_list<const TensorView*> views) {
  if (n % kPack<T> != 0) return false;
  for (const TensorView* view : views) {
    if (reinterpret_cast<std::uintptr_t>(view->data()) % 16 != 0) return false;
  }
  return true;
}

/// How many of a pack's elements are there, of a row of n from `at` on.
template <class T>
TRIAX_LANE int live_of(std::int64_t n, std::int64_t at) {
  const std::int64_t left = n - at;
  return left < kPack<T> ? static_cast<int>(left) : kPack<T>;
}

/// Elements that are not there are 0.
template <class T>
TRIAX_LANE Values<T> load(const T* from, int live, bool packed) {
  Values<T> out;
  if (packed) {
    const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(from);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) out.at[i] = widened(pack.at[i]);
  } else {
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) out.at[i] = i < live ? widened(from[i]) : 0.0f;
  }
  return out;
}

template <class T>
TRIAX_LANE void store(T* to, const Values<T>& values, int live, bool packed) {
  if (packed) {
    Pack<T> pack;
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) pack.at[i] = narrowed<T>(values.at[i]);
    *reinterpret_cast<Pack<T>*>(to) = pack;
  } else {
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) {
      if (i < live) to[i] = narrowed<T>(values.at[i]);
    }
  }
}

} // namespace triax::fused
