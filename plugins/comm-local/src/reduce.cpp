// SPDX-License-Identifier: Apache-2.0
#include "reduce.hpp"

#include <algorithm>
#include <type_traits>

#include "triax/half.hpp"

namespace triax::comm_local {

namespace {

constexpr std::int64_t kBlock = 512; // elements; the accumulators fit in the L1 cache

/// T is the stored type, Sum the type of the accumulator.
template <class T, class Sum>
void reduce_typed(Reduce reduce, std::span<const std::byte* const> sources, std::byte* out, std::int64_t elements) {
  Sum sums[kBlock];
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, elements - begin);
    const auto source = [&](std::size_t member) { return reinterpret_cast<const T*>(sources[member]) + begin; };
    for (std::int64_t i = 0; i < length; ++i) sums[i] = static_cast<Sum>(source(0)[i]);
    for (std::size_t member = 1; member < sources.size(); ++member) {
      const T* values = source(member);
      if (reduce == Reduce::sum) {
        for (std::int64_t i = 0; i < length; ++i) sums[i] = sums[i] + static_cast<Sum>(values[i]);
      } else {
        for (std::int64_t i = 0; i < length; ++i) sums[i] = std::max(sums[i], static_cast<Sum>(values[i]));
      }
    }
    T* target = reinterpret_cast<T*>(out) + begin;
    for (std::int64_t i = 0; i < length; ++i) target[i] = T(sums[i]);
  }
}

/// Integers are added as unsigned, because signed overflow is undefined, and compared as signed.
template <class T>
void reduce_integer(Reduce reduce, std::span<const std::byte* const> sources, std::byte* out, std::int64_t elements) {
  if (reduce == Reduce::sum) {
    reduce_typed<T, std::make_unsigned_t<T>>(reduce, sources, out, elements);
  } else {
    reduce_typed<T, T>(reduce, sources, out, elements);
  }
}

} // namespace

bool can_reduce(DType dtype) noexcept {
  return dtype != DType::u8;
}

void reduce_members(DType dtype, Reduce reduce, std::span<const std::byte* const> sources, std::byte* out,
                    std::int64_t elements) noexcept {
  switch (dtype) {
    case DType::f32:
      return reduce_typed<float, float>(reduce, sources, out, elements);
    case DType::f64:
      return reduce_typed<double, double>(reduce, sources, out, elements);
    case DType::bf16:
      return reduce_typed<Bf16, float>(reduce, sources, out, elements);
    case DType::f16:
      return reduce_typed<F16, float>(reduce, sources, out, elements);
    case DType::i32:
      return reduce_integer<std::int32_t>(reduce, sources, out, elements);
    case DType::i64:
      return reduce_integer<std::int64_t>(reduce, sources, out, elements);
    case DType::u8:
      return; // can_reduce() refuses it when the call is posted
  }
}

} // namespace triax::comm_local
