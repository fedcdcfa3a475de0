// SPDX-License-Identifier: Apache-2.0
// Packs: sixteen bytes of a row, which a lane loads, computes on in f32, and stores at a time.
//
// A lane gets the same elements whether or not memory is aligned: in unaligned rows, and where a row ends in a pack,
// they are loaded one by one. So the results of a view have the same bits for every alignment.
//
// Threads: pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "lanes.hpp"
#include "triax/cuda/rounding.hpp"
#include "triax/tensor.hpp"

namespace triax::kernels_fused {

template <class T>
inline constexpr int kPack = static_cast<int>(16 / sizeof(T));

/// The values of a pack: as many as 16 bytes of T have.
template <class T>
struct Values {
  float at[kPack<T>];
};

/// A pack as stored in memory.
template <class T>
struct alignas(16) Pack {
  std::uint32_t words[4];
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

/// Rounds to nearest, ties to even. The GPU does not keep a NaN's payload.
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

/// Two 16-bit values, `low` in the lower half of the word; each is rounded as in narrowed().
template <class T>
TRIAX_LANE std::uint32_t narrowed_pair(float low, float high) {
#if defined(__CUDACC__)
  std::uint32_t out = 0;
  if constexpr (std::is_same_v<T, F16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  }
  return out;
#else
  return narrowed<T>(low).bits | static_cast<std::uint32_t>(narrowed<T>(high).bits) << 16;
#endif
}

template <class T>
TRIAX_LANE Values<T> widened(Pack<T> pack) {
  Values<T> out;
  TRIAX_UNROLL
  for (int i = 0; i < kPack<T>; ++i) {
    if constexpr (cuda::kHalf<T>) {
      T one{};
      one.bits = static_cast<std::uint16_t>(pack.words[i / 2] >> (16 * (i % 2)));
      out.at[i] = widened(one);
    } else {
      out.at[i] = std::bit_cast<float>(pack.words[i]);
    }
  }
  return out;
}
template <class T>
TRIAX_LANE Pack<T> narrowed(const Values<T>& values) {
  Pack<T> out;
  TRIAX_UNROLL
  for (int i = 0; i < 4; ++i) {
    if constexpr (cuda::kHalf<T>) {
      out.words[i] = narrowed_pair<T>(values.at[2 * i], values.at[2 * i + 1]);
    } else {
      out.words[i] = std::bit_cast<std::uint32_t>(values.at[i]);
    }
  }
  return out;
}

/// Stores kWords words, aligned to their total size, in one instruction. nvcc splits a struct copy, but not the
/// intrinsic.
template <int kWords>
TRIAX_LANE void put_words(void* to, const std::uint32_t (&words)[kWords]) {
  static_assert(kWords == 2 || kWords == 4);
#if defined(__CUDACC__)
  if constexpr (kWords == 2) {
    __stwb(static_cast<uint2*>(to), make_uint2(words[0], words[1]));
  } else {
    __stwb(static_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
  }
#else
  std::memcpy(to, words, sizeof(words));
#endif
}

/// Whether every row of n elements of T starts at a multiple of 16 bytes in all of these views. Empty views count as
/// aligned.
template <class T>
bool packed_rows(std::int64_t n, std::initializer_list<const TensorView*> views) {
  if (n % kPack<T> != 0) return false;
  for (const TensorView* view : views) {
    if (reinterpret_cast<std::uintptr_t>(view->data()) % 16 != 0) return false;
  }
  return true;
}

/// Number of valid elements of a pack at element `at` of a row of n elements.
template <class T>
TRIAX_LANE int live_of(std::int64_t n, std::int64_t at) {
  const std::int64_t left = n - at;
  return left < kPack<T> ? static_cast<int>(left) : kPack<T>;
}

#if defined(__CUDACC__)
template <class T>
TRIAX_LANE Pack<T> pack_of(uint4 words) {
  return {{words.x, words.y, words.z, words.w}};
}
#endif

/// Elements that are not valid are 0.
template <class T>
TRIAX_LANE Pack<T> read(const T* from, int live, bool packed) {
  if (packed) {
#if defined(__CUDACC__)
    return pack_of<T>(*reinterpret_cast<const uint4*>(from));
#else
    Pack<T> out;
    std::memcpy(&out, from, sizeof(out));
    return out;
#endif
  }
  Pack<T> out{};
  TRIAX_UNROLL
  for (int i = 0; i < kPack<T>; ++i) {
    if (i >= live) continue;
    if constexpr (cuda::kHalf<T>) {
      out.words[i / 2] |= static_cast<std::uint32_t>(from[i].bits) << (16 * (i % 2));
    } else {
      out.words[i] = std::bit_cast<std::uint32_t>(from[i]);
    }
  }
  return out;
}
template <class T>
TRIAX_LANE Values<T> load(const T* from, int live, bool packed) {
  return widened(read(from, live, packed));
}
/// The same for memory that the kernel does not write: the load may move before earlier stores.
template <class T>
TRIAX_LANE Values<T> load_fixed(const T* from, int live, bool packed) {
#if defined(__CUDACC__)
  if (packed) return widened(pack_of<T>(__ldg(reinterpret_cast<const uint4*>(from))));
#endif
  return load(from, live, packed);
}

template <class T>
TRIAX_LANE void store(T* to, const Values<T>& values, int live, bool packed) {
  if (packed) {
    put_words(to, narrowed(values).words);
  } else {
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) {
      if (i < live) to[i] = narrowed<T>(values.at[i]);
    }
  }
}

} // namespace triax::kernels_fused
