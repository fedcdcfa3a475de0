// SPDX-License-Identifier: Apache-2.0
// cvt and mov.
#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

template <class T>
T to_integral(T x, Rounding how) {
  switch (how) {
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}

// Integer to integer. A saturated result is within the limits of To; others keep the low bits.
template <class To, class From, bool kSaturate>
To narrow(From x) {
  if constexpr (kSaturate) {
    using Limits = std::numeric_limits<To>;
    const Signed128 wide = x;
    return static_cast<To>(wide < Limits::min()   ? Limits::min()
                           : wide > Limits::max() ? Limits::max()
                                                  : static_cast<To>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
Execute integer_from_integer(const Instruction& i) {
  if (i.saturate) return each<[](From x) { return narrow<To, From, true>(x); }, To, From>;
  return each<[](From x) { return narrow<To, From, false>(x); }, To, From>;
}

template <class To, class From, Rounding kHow>
void integer_from_float(Warp& w, const Instruction& i, std::uint32_t lanes) {
  if (i.ftz)
    each<[](From x) {
      return to_integer<To>(
          to_integral(std::is_same_v<From, float> ? static_cast<From>(flush(static_cast<float>(x))) : x, kHow));
    },
         To, From>(w, i, lanes);
  else
    each<[](From x) { return to_integer<To>(to_integral(x, kHow)); }, To, From>(w, i, lanes);
}

template <class To, class From>
Execute integer_from_float(const Instruction& i) {
  if (!i.integral) return nullptr;
  switch (i.rounding) {
    case Rounding::kZero:
      return integer_from_float<To, From, Rounding::kZero>;
    case Rounding::kDown:
      return integer_from_float<To, From, Rounding::kDown>;
    case Rounding::kUp:
      return integer_from_float<To, From, Rounding::kUp>;
    default:
      return integer_from_float<To, From, Rounding::kNearest>;
  }
}

// f32 to f32 and f64 to f64: .ftz, to an integral value, .sat, in this order.
template <class T, Rounding kHow, bool kIntegral, bool kSaturate, bool kFlush>
void same_float(Warp& w, const Instruction& i, std::uint32_t lanes) {
  each<[](T x) {
    if constexpr (kFlush) x = flush(x);
    if constexpr (kIntegral) x = to_integral(x, kHow);
    if constexpr (kSaturate) x = saturated(x);
    return x;
  },
       T, T>(w, i, lanes);
}

template <class T, bool kSaturate, bool kFlush>
Execute same_float_rounded(const Instruction& i) {
  if (!i.integral) return same_float<T, Rounding::kNone, false, kSaturate, kFlush>;
  switch (i.rounding) {
    case Rounding::kZero:
      return same_float<T, Rounding::kZero, true, kSaturate, kFlush>;
    case Rounding::kDown:
      return same_float<T, Rounding::kDown, true, kSaturate, kFlush>;
    case Rounding::kUp:
      return same_float<T, Rounding::kUp, true, kSaturate, kFlush>;
    default:
      return same_float<T, Rounding::kNearest, true, kSaturate, kFlush>;
  }
}

Execute half_from_f32(const Instruction& i) {
  if (i.saturate || i.ftz || i.integral) return nullptr;
  const bool zero = i.rounding == Rounding::kZero;
  if (!zero && i.rounding != Rounding::kNearest) return nullptr;
  switch (i.type) {
    case Type::kF16:
      return zero ? each<[](float x) { return to_half<true>(x); }, Half, float>
                  : each<[](float x) { return to_half<false>(x); }, Half, float>;
    case Type::kBf16:
      return zero ? each<[](float x) { return to_brain<true>(x); }, Brain, float>
                  : each<[](float x) { return to_brain<false>(x); }, Brain, float>;
    case Type::kF16x2: // the first operand becomes the upper half
      return zero ? each<[](float a, float b) {
        return std::uint32_t{to_half<true>(a).bits} << 16 | to_half<true>(b).bits;
      },
                         std::uint32_t, float, float>
                  : each<[](float a, float b) {
                      return std::uint32_t{to_half<false>(a).bits} << 16 | to_half<false>(b).bits;
                    },
                         std::uint32_t, float, float>;
    case Type::kBf16x2:
      return zero ? each<[](float a, float b) {
        return std::uint32_t{to_brain<true>(a).bits} << 16 | to_brain<true>(b).bits;
      },
                         std::uint32_t, float, float>
                  : each<[](float a, float b) {
                      return std::uint32_t{to_brain<false>(a).bits} << 16 | to_brain<false>(b).bits;
                    },
                         std::uint32_t, float, float>;
    default:
      return nullptr;
  }
}

template <class From>
Execute from_integer(const Instruction& i) {
  switch (i.type) {
    case Type::kS8:
      return integer_from_integer<std::int8_t, From>(i);
    case Type::kU8:
      return integer_from_integer<std::uint8_t, From>(i);
    case Type::kS16:
      return integer_from_integer<std::int16_t, From>(i);
    case Type::kU16:
      return integer_from_integer<std::uint16_t, From>(i);
    case Type::kS32:
      return integer_from_integer<std::int32_t, From>(i);
    case Type::kU32:
      return integer_from_integer<std::uint32_t, From>(i);
    case Type::kS64:
      return integer_from_integer<std::int64_t, From>(i);
    case Type::kU64:
      return integer_from_integer<std::uint64_t, From>(i);
    case Type::kF32:
      return i.saturate || i.ftz ? nullptr : each<[](From x) { return static_cast<float>(x); }, float, From>;
    case Type::kF64:
      return i.saturate ? nullptr : each<[](From x) { return static_cast<double>(x); }, double, From>;
    default:
      return nullptr;
  }
}

template <class From>
Execute integer_from(const Instruction& i) {
  switch (i.type) {
    case Type::kS8:
      return integer_from_float<std::int8_t, From>(i);
    case Type::kU8:
      return integer_from_float<std::uint8_t, From>(i);
    case Type::kS16:
      return integer_from_float<std::int16_t, From>(i);
    case Type::kU16:
      return integer_from_float<std::uint16_t, From>(i);
    case Type::kS32:
      return integer_from_float<std::int32_t, From>(i);
    case Type::kU32:
      return integer_from_float<std::uint32_t, From>(i);
    case Type::kS64:
      return integer_from_float<std::int64_t, From>(i);
    case Type::kU64:
      return integer_from_float<std::uint64_t, From>(i);
    default:
      return nullptr;
  }
}

template <class From>
Execute from_16_bits(const Instruction& i) {
  if (i.type != Type::kF32 || i.saturate || i.integral || i.ftz) return nullptr;
  return each<[](From x) { return to_float(x); }, float, From>;
}

Execute from_f32(const Instruction& i) {
  if (i.type == Type::kF32) {
    if (i.saturate) return i.ftz ? same_float_rounded<float, true, true>(i) : same_float_rounded<float, true, false>(i);
    return i.ftz ? same_float_rounded<float, false, true>(i) : same_float_rounded<float, false, false>(i);
  }
  if (i.type == Type::kF64)
    return i.saturate || i.integral || i.ftz ? nullptr
                                             : each<[](float x) { return static_cast<double>(x); }, double, float>;
  if (bytes_of(i.type) == 2 && is_float(i.type)) return half_from_f32(i);
  if (i.type == Type::kF16x2 || i.type == Type::kBf16x2) return half_from_f32(i);
  return integer_from<float>(i);
}

Execute from_f64(const Instruction& i) {
  if (i.type == Type::kF64)
    return i.saturate ? same_float_rounded<double, true, false>(i) : same_float_rounded<double, false, false>(i);
  if (i.type == Type::kF32) {
    if (i.integral || i.ftz) return nullptr;
    if (i.saturate) return each<[](double x) { return saturated(static_cast<float>(x)); }, float, double>;
    return each<[](double x) { return static_cast<float>(x); }, float, double>;
  }
  return integer_from<double>(i);
}

template <class To, class From>
void move(Warp& w, const Instruction& i, std::uint32_t lanes) {
  each<[](From x) { return static_cast<To>(x); }, To, From>(w, i, lanes);
}

void move_predicate(Warp& w, const Instruction& i, std::uint32_t lanes) {
  set_predicate(w, i.o[0], *w.at<const std::uint32_t>(i.o[1]), lanes);
}

void move_clock(Warp& w, const Instruction& i, std::uint32_t lanes) {
  const auto now = static_cast<std::uint64_t>(__builtin_ia32_rdtsc());
  for (int l = 0; l < kLanes; ++l)
    if (lanes >> l & 1) w.set(i.o[0], l, now);
}

// mov {a, b}, c: the parts from the lowest on.
void unpack(Warp& w, const Instruction& i, std::uint32_t lanes) {
  const int parts = i.sub, bits = 8 * bytes_of(i.type) / parts;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const std::uint64_t x = w.value(i.o[parts], l);
    for (int p = 0; p < parts; ++p) w.set(i.o[p], l, x >> (bits * p) & mask);
  }
}

void pack(Warp& w, const Instruction& i, std::uint32_t lanes) {
  const int parts = i.sub & 0x7F, bits = 8 * bytes_of(i.type) / parts;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    std::uint64_t x = 0;
    for (int p = 0; p < parts; ++p) x |= (w.value(i.o[p + 1], l) & mask) << (bits * p);
    w.set(i.o[0], l, x);
  }
}

} // namespace

Execute choose_convert(const Instruction& i) {
  switch (i.type2 == Type::kNone ? i.type : i.type2) {
    case Type::kS8:
      return from_integer<std::int8_t>(i);
    case Type::kU8:
      return from_integer<std::uint8_t>(i);
    case Type::kS16:
      return from_integer<std::int16_t>(i);
    case Type::kU16:
      return from_integer<std::uint16_t>(i);
    case Type::kS32:
      return from_integer<std::int32_t>(i);
    case Type::kU32:
      return from_integer<std::uint32_t>(i);
    case Type::kS64:
      return from_integer<std::int64_t>(i);
    case Type::kU64:
      return from_integer<std::uint64_t>(i);
    case Type::kF16:
      return from_16_bits<Half>(i);
    case Type::kBf16:
      return from_16_bits<Brain>(i);
    case Type::kF32:
      return from_f32(i);
    case Type::kF64:
      return from_f64(i);
    default:
      return nullptr;
  }
}

Execute choose_move(const Instruction& i) {
  if (i.sub != 0) return i.sub & 0x80 ? pack : unpack;
  if (i.type == Type::kPred) return move_predicate;
  if (i.reads_clock) return move_clock;
  if (i.o[0].width == 8)
    return i.o[1].width == 8 ? move<std::uint64_t, std::uint64_t> : move<std::uint64_t, std::uint32_t>;
  return i.o[1].width == 8 ? move<std::uint32_t, std::uint64_t> : move<std::uint32_t, std::uint32_t>;
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
