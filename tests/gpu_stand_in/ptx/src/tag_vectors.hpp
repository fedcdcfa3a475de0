// SPDX-License-Identifier: Apache-2.0
// Tags of accesses, several at a time: the checks of memory take most of an access's time. Compiled once per
// instruction set.
#pragma once

#include <cstdint>
#include <cstring>

namespace triax::gpu_stand_in::STAND_IN_ISA {

template <int kWidth>
struct TagVector {
  using Tags [[gnu::vector_size(4 * kWidth)]] = std::uint32_t;
  static constexpr std::uint32_t kCount = kWidth;

  STAND_IN_INLINE static Tags load(const std::uint32_t* from) {
    Tags tags;
    std::memcpy(&tags, from, sizeof(tags));
    return tags;
  }
  STAND_IN_INLINE static void store(std::uint32_t* to, Tags tags) { std::memcpy(to, &tags, sizeof(tags)); }
  STAND_IN_INLINE static Tags all(std::uint32_t tag) { return tag - Tags{}; }
  // first + n >> shift for n = begin, begin + 1, ...
  STAND_IN_INLINE static Tags steps(std::uint32_t first, std::uint32_t begin, int shift) {
    constexpr std::uint32_t kSteps[] = {0, 1, 2, 3, 4, 5, 6, 7};
    return all(first) + ((load(kSteps) + begin) >> shift);
  }
};

// Whether a comparison of tags was true for any of them.
class AnyTag {
 public:
  template <class Mask>
  STAND_IN_INLINE void add(Mask mask) {
    if constexpr (sizeof(mask) == 32) {
      wide_ |= reinterpret_cast<const Wide&>(mask);
    } else {
      for (std::size_t n = 0; n < sizeof(mask) / 4; ++n) narrow_ |= static_cast<std::uint32_t>(mask[n]);
    }
  }
  STAND_IN_INLINE bool any() const { return (wide_[0] | wide_[1] | wide_[2] | wide_[3] | narrow_) != 0; }

 private:
  using Wide = std::uint64_t __attribute__((vector_size(32), may_alias));
  Wide wide_{};
  std::uint32_t narrow_ = 0;
};

// Calls f(begin, TagVector) for vectors that cover `count` tags.
template <class F>
STAND_IN_INLINE void for_tags(std::uint32_t count, F f) {
  std::uint32_t g = 0;
  for (; g + 8 <= count; g += 8) f(g, TagVector<8>{});
  if (count & 4) {
    f(g, TagVector<4>{});
    g += 4;
  }
  for (; g < count; ++g) f(g, TagVector<1>{});
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
