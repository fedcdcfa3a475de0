// SPDX-License-Identifier: Apache-2.0
// Shared by attention forward and backward: views of one head as a matrix, and packing of rows into contiguous memory.
//
// Threads: any; pure functions.
// Scores exist for one block of queries and keys at a time, in the scratch of the thread that computes it. In a
// [s, b, a, d] tensor the rows of one head are far apart, each on its own page; packed rows make products up to twice
// as fast.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "cpu_kernels.hpp"

namespace triax::kernels_cpu::attention {

// Two blocks of scores (queries x keys, fp32) fit in the L2 cache.
inline constexpr std::int64_t kQueries = 64, kKeys = 256;

/// One sample's head of a [s, b, a, d] view, as a matrix [s, d].
template <class T>
struct Head {
  T* data;
  std::int64_t stride, width; // stride between positions; width is d
  T* row(std::int64_t position) const { return data + position * stride; }
};
/// A view of one position may have any stride, but oneDNN requires at least the width.
template <class T>
Head<T> head_of(const TensorView& x, std::int64_t sample, std::int64_t head) {
  return {x.as<T>() + sample * x.stride(1) + head * x.stride(2), std::max(x.stride(0), x.size(3)), x.size(3)};
}

inline void pack(float* to, const Head<const float>& x, std::int64_t begin, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(x.row(begin + i), x.width, to + i * x.width);
}
inline void unpack(const Head<float>& x, std::int64_t begin, std::int64_t count, const float* from) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * x.width, x.width, x.row(begin + i));
}
inline void clear(const Head<float>& x, std::int64_t begin, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::fill_n(x.row(begin + i), x.width, 0.0f);
}

struct Sizes {
  Sizes(const TensorView& q, const TensorView& k)
      : queries(q.size(0)),
        samples(q.size(1)),
        heads(q.size(2)),
        width(q.size(3)),
        keys(k.size(0)),
        key_heads(k.size(2)) {}
  std::int64_t queries, samples, heads, width, keys, key_heads;
  std::int64_t group() const { return heads / key_heads; } // query heads per key head
};

/// Positions [begin, begin + count).
struct Range {
  std::int64_t begin, count;
};
inline std::int64_t block_count(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}
inline Range block(std::int64_t length, std::int64_t size, std::int64_t index) {
  return {index * size, std::min(size, length - index * size)};
}

/// Splits one thread's scratch into buffers. With a null base it only counts the size.
class Buffers {
 public:
  explicit Buffers(float* base) : base_(base) {}
  float* take(std::int64_t floats) {
    float* at = base_ ? base_ + used_ : nullptr;
    used_ +=
        static_cast<std::int64_t>(Arena::aligned(static_cast<std::size_t>(floats) * sizeof(float)) / sizeof(float));
    return at;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(used_) * sizeof(float); }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

inline float* thread_scratch(std::span<std::byte> scratch, int thread, std::size_t bytes_of_thread) {
  return reinterpret_cast<float*>(scratch.data() + static_cast<std::size_t>(thread) * bytes_of_thread);
}

} // namespace triax::kernels_cpu::attention
