// SPDX-License-Identifier: Apache-2.0
// Floating-point instructions. Rounding other than to nearest is set around them (bind.cpp).
#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

// .ftz and .sat around an operation on f32.
template <auto F, bool kFlush, bool kSaturate, class... A>
void f32(Warp& w, const Instruction& i, std::uint32_t lanes) {
  constexpr auto wrapped = [](A... a) {
    float r = 0;
    if constexpr (kFlush)
      r = flush(F(flush(a)...));
    else
      r = F(a...);
    if constexpr (kSaturate) r = saturated(r);
    return r;
  };
  each<wrapped, float, A...>(w, i, lanes);
}

template <auto F, class... A>
Execute f32_variant(const Instruction& i) {
  if (i.ftz) return i.saturate ? f32<F, true, true, A...> : f32<F, true, false, A...>;
  return i.saturate ? f32<F, false, true, A...> : f32<F, false, false, A...>;
}

template <auto F>
Execute unary(const Instruction& i) {
  if (i.type == Type::kF32) return f32_variant<[](float a) { return F(a); }, float>(i);
  if (i.type == Type::kF64 && !i.saturate && !i.ftz) return each<[](double a) { return F(a); }, double, double>;
  return nullptr;
}

template <auto F>
Execute binary(const Instruction& i) {
  if (i.type == Type::kF32) return f32_variant<[](float a, float b) { return F(a, b); }, float, float>(i);
  if (i.type == Type::kF64 && !i.saturate && !i.ftz)
    return each<[](double a, double b) { return F(a, b); }, double, double, double>;
  return nullptr;
}

Execute choose_fma(const Instruction& i) {
  if (i.type == Type::kF32)
    return f32_variant<[](float a, float b, float c) { return std::fma(a, b, c); }, float, float, float>(i);
  if (i.type == Type::kF64 && !i.saturate) {
    return each<[](double a, double b, double c) { return std::fma(a, b, c); }, double, double, double, double>;
  }
  return nullptr;
}

// Signs and bits, for which NaN needs no special case.
template <class F32, class F64>
Execute by_bits(const Instruction& i, F32, F64) {
  if (i.type == Type::kF32) return each<F32{}, std::uint32_t, std::uint32_t>;
  if (i.type == Type::kF64) return each<F64{}, std::uint64_t, std::uint64_t>;
  return nullptr;
}

constexpr auto kRootReciprocal = [](auto a) {
  return static_cast<decltype(a)>(1.0 / std::sqrt(static_cast<double>(a)));
};

// rcp.approx.ftz.f64: the lower halves of operand and result count as zero.
double approximate_reciprocal(double a) {
  constexpr std::uint64_t kUpper = ~std::uint64_t{0xFFFFFFFF}, kSign = std::uint64_t{1} << 63;
  auto flush64 = [](std::uint64_t u) { return (u >> 52 & 0x7FF) == 0 ? u & kSign : u; };
  const double upper = std::bit_cast<double>(flush64(std::bit_cast<std::uint64_t>(a) & kUpper));
  return std::bit_cast<double>(flush64(std::bit_cast<std::uint64_t>(1 / upper) & kUpper));
}

} // namespace

Execute choose_float(const Instruction& i) {
  switch (i.op) {
    case Op::kAdd:
      return binary<[](auto a, auto b) { return a + b; }>(i);
    case Op::kSub:
      return binary<[](auto a, auto b) { return a - b; }>(i);
    case Op::kMul:
      return binary<[](auto a, auto b) { return a * b; }>(i);
    case Op::kDiv:
      return binary<[](auto a, auto b) { return a / b; }>(i);
    case Op::kMin:
      return binary<[](auto a, auto b) { return extremum<decltype(a), false>(a, b); }>(i);
    case Op::kMax:
      return binary<[](auto a, auto b) { return extremum<decltype(a), true>(a, b); }>(i);
    case Op::kFma:
      return choose_fma(i);
    case Op::kSqrt:
      return unary<[](auto a) { return std::sqrt(a); }>(i);
    case Op::kRsqrt:
      return unary<kRootReciprocal>(i);
    case Op::kRcp:
      if (i.type == Type::kF64 && i.ftz) return each<approximate_reciprocal, double, double>;
      return unary<[](auto a) { return 1 / a; }>(i);
    case Op::kEx2:
      return i.type == Type::kF32 ? unary<[](auto a) { return std::exp2(a); }>(i) : nullptr;
    case Op::kLg2:
      return i.type == Type::kF32 ? unary<[](auto a) { return std::log2(a); }>(i) : nullptr;
    case Op::kSin:
      return i.type == Type::kF32 ? unary<[](auto a) { return std::sin(a); }>(i) : nullptr;
    case Op::kCos:
      return i.type == Type::kF32 ? unary<[](auto a) { return std::cos(a); }>(i) : nullptr;
    case Op::kTanh:
      return i.type == Type::kF32 ? unary<[](auto a) { return std::tanh(a); }>(i) : nullptr;
    case Op::kAbs:
      return by_bits(
          i, [](std::uint32_t a) { return a & 0x7FFFFFFFu; },
          [](std::uint64_t a) { return a & ~std::uint64_t{0} >> 1; });
    case Op::kNeg:
      return by_bits(
          i, [](std::uint32_t a) { return a ^ 0x80000000u; },
          [](std::uint64_t a) { return a ^ std::uint64_t{1} << 63; });
    case Op::kCopysign: // the sign of the first on the second
      if (i.type == Type::kF32) return each<[](float a, float b) { return std::copysign(b, a); }, float, float, float>;
      if (i.type == Type::kF64)
        return each<[](double a, double b) { return std::copysign(b, a); }, double, double, double>;
      return nullptr;
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
