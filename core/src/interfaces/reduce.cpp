// SPDX-License-Identifier: Apache-2.0
#include "triax/reduce.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "triax/half.hpp"

namespace triax {

namespace {

constexpr std::int64_t kBlock = 512; // elements; the accumulators fit in the L1 cache

// Conversions without branches, so that the loops below vectorise; the bits are those of half.hpp.

/// T is the stored type, Sum the type of the accumulator.
template <class T, class Sum>
struct As {
  using Stored = T;
  using Added = Sum;
  static Sum read(T value) noexcept { return static_cast<Sum>(value); }
  static T write(Sum value) noexcept { return static_cast<T>(value); }
};

struct AsBf16 {
  using Stored = std::uint16_t;
  using Added = float;
  static float read(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  static std::uint16_t write(float value) noexcept { return half_detail::bf16_bits(value); }
};

struct AsF16 {
  using Stored = std::uint16_t;
  using Added = float;
  static float read(std::uint16_t half) noexcept {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7FFFu) << 13;
    const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f); // exact
    const std::uint32_t other = magnitude | 0x7F800000u; // infinity, NaN
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    return std::bit_cast<float>(sign | (magnitude >= 0x0F800000u ? other : finite));
  }
  static std::uint16_t write(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    // Subnormal result: the float addition does the rounding.
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const std::uint32_t normal = (magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
    const std::uint32_t large = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u; // NaN; rounds to more than 65504
    const std::uint32_t finite = magnitude < 0x38800000u ? small : normal;
    return static_cast<std::uint16_t>(sign | (magnitude >= 0x477FF000u ? large : finite));
  }
};

struct Add {
  template <class Sum>
  static Sum of(Sum a, Sum b) noexcept {
    return static_cast<Sum>(a + b);
  }
};
struct Max {
  template <class Sum>
  static Sum of(Sum a, Sum b) noexcept {
    return a < b ? b : a;
  }
};

template <class Form, class Op>
void reduce_typed(std::span<const std::byte* const> sources, std::byte* out, std::int64_t elements) noexcept {
  using Stored = typename Form::Stored;
  using Added = typename Form::Added;
  const std::size_t last = sources.size() - 1;
  Added sums[kBlock];
  for (std::int64_t begin = 0; begin < elements; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, elements - begin);
    const auto source = [&](std::size_t member) { return reinterpret_cast<const Stored*>(sources[member]) + begin; };
    Stored* to = reinterpret_cast<Stored*>(out) + begin; // is one of the sources, or does not overlap them
    const Stored* first = source(0);
    if (last == 0) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < length; ++i) to[i] = Form::write(Form::read(first[i]));
      continue;
    }
    const Stored* values = source(1);
    if (last == 1) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < length; ++i)
        to[i] = Form::write(Op::of(Form::read(first[i]), Form::read(values[i])));
      continue;
    }
    for (std::int64_t i = 0; i < length; ++i) sums[i] = Op::of(Form::read(first[i]), Form::read(values[i]));
    for (std::size_t member = 2; member < last; ++member) {
      values = source(member);
      for (std::int64_t i = 0; i < length; ++i) sums[i] = Op::of(sums[i], Form::read(values[i]));
    }
    values = source(last);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < length; ++i) to[i] = Form::write(Op::of(sums[i], Form::read(values[i])));
  }
}

template <class Form>
void reduce_form(Reduce reduce, std::span<const std::byte* const> sources, std::byte* out,
                 std::int64_t elements) noexcept {
  if (reduce == Reduce::sum) return reduce_typed<Form, Add>(sources, out, elements);
  reduce_typed<Form, Max>(sources, out, elements);
}

/// Integers are added as unsigned, because signed overflow is undefined, and compared as signed.
template <class T>
void reduce_integer(Reduce reduce, std::span<const std::byte* const> sources, std::byte* out,
                    std::int64_t elements) noexcept {
  using Unsigned = std::make_unsigned_t<T>;
  if (reduce == Reduce::sum) return reduce_typed<As<Unsigned, Unsigned>, Add>(sources, out, elements);
  reduce_typed<As<T, T>, Max>(sources, out, elements);
}

} // namespace

void reduce_members(DType dtype, Reduce reduce, std::span<const std::byte* const> sources, std::byte* out,
                    std::int64_t elements) noexcept {
  switch (dtype) {
    case DType::f32:
      return reduce_form<As<float, float>>(reduce, sources, out, elements);
    case DType::f64:
      return reduce_form<As<double, double>>(reduce, sources, out, elements);
    case DType::bf16:
      return reduce_form<AsBf16>(reduce, sources, out, elements);
    case DType::f16:
      return reduce_form<AsF16>(reduce, sources, out, elements);
    case DType::i32:
      return reduce_integer<std::int32_t>(reduce, sources, out, elements);
    case DType::i64:
      return reduce_integer<std::int64_t>(reduce, sources, out, elements);
    case DType::u8:
      return; // refused when the call is posted
  }
}

} // namespace triax
