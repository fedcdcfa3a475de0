// SPDX-License-Identifier: Apache-2.0
// Integer instructions.
#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

using S16 = std::int16_t;
using U16 = std::uint16_t;
using S32 = std::int32_t;
using U32 = std::uint32_t;
using S64 = std::int64_t;
using U64 = std::uint64_t;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <auto F>
Execute binary(const Instruction& i) {
  switch (i.type) {
    case Type::kS16:
      return each<[](S16 a, S16 b) { return static_cast<S16>(F(a, b)); }, S16, S16, S16>;
    case Type::kU16:
    case Type::kB16:
      return each<[](U16 a, U16 b) { return static_cast<U16>(F(a, b)); }, U16, U16, U16>;
    case Type::kS32:
      return each<[](S32 a, S32 b) { return static_cast<S32>(F(a, b)); }, S32, S32, S32>;
    case Type::kU32:
    case Type::kB32:
      return each<[](U32 a, U32 b) { return static_cast<U32>(F(a, b)); }, U32, U32, U32>;
    case Type::kS64:
      return each<[](S64 a, S64 b) { return static_cast<S64>(F(a, b)); }, S64, S64, S64>;
    case Type::kU64:
    case Type::kB64:
      return each<[](U64 a, U64 b) { return static_cast<U64>(F(a, b)); }, U64, U64, U64>;
    default:
      return nullptr;
  }
}

constexpr auto kQuotient = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
  }
  return static_cast<T>(a / b);
};

constexpr auto kRemainder = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return T{0};
  }
  return static_cast<T>(a % b);
};

constexpr auto kSaturatedSum = [](S32 a, S32 b) {
  const S64 s = S64{a} + b;
  return static_cast<S32>(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
};
constexpr auto kSaturatedDifference = [](S32 a, S32 b) {
  const S64 s = S64{a} - b;
  return static_cast<S32>(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
};

template <class T>
T high(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>;
    return static_cast<T>(static_cast<Wide>(a) * b >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, S64, U64>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (8 * sizeof(T)));
  }
}

template <bool kAdd>
Execute high_product(const Instruction& i) {
  auto with = []<class T>(T) -> Execute {
    if constexpr (kAdd) {
      return each<[](T a, T b, T c) {
        return static_cast<T>(static_cast<Unsigned<T>>(high(a, b)) + static_cast<Unsigned<T>>(c));
      },
                  T, T, T, T>;
    } else {
      return each<[](T a, T b) { return high(a, b); }, T, T, T>;
    }
  };
  switch (i.type) {
    case Type::kS16:
      return with(S16{});
    case Type::kU16:
      return with(U16{});
    case Type::kS32:
      return with(S32{});
    case Type::kU32:
      return with(U32{});
    case Type::kS64:
      return with(S64{});
    case Type::kU64:
      return with(U64{});
    default:
      return nullptr;
  }
}

template <bool kAdd>
Execute wide_product(const Instruction& i) {
  auto with = []<class T, class Wide>(T, Wide) -> Execute {
    if constexpr (kAdd) {
      return each<[](T a, T b, Wide c) {
        return static_cast<Wide>(static_cast<Unsigned<Wide>>(static_cast<Wide>(a) * static_cast<Wide>(b)) +
                                 static_cast<Unsigned<Wide>>(c));
      },
                  Wide, T, T, Wide>;
    } else {
      return each<[](T a, T b) { return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b)); }, Wide, T, T>;
    }
  };
  switch (i.type) {
    case Type::kS16:
      return with(S16{}, S32{});
    case Type::kU16:
      return with(U16{}, U32{});
    case Type::kS32:
      return with(S32{}, S64{});
    case Type::kU32:
      return with(U32{}, U64{});
    default:
      return nullptr;
  }
}

Execute low_product_and_sum(const Instruction& i) {
  switch (bytes_of(i.type)) {
    case 2:
      return each<[](U16 a, U16 b, U16 c) { return static_cast<U16>(U32{a} * b + c); }, U16, U16, U16, U16>;
    case 4:
      return each<[](U32 a, U32 b, U32 c) { return a * b + c; }, U32, U32, U32, U32>;
    case 8:
      return each<[](U64 a, U64 b, U64 c) { return a * b + c; }, U64, U64, U64, U64>;
    default:
      return nullptr;
  }
}

// Additions that read or write the carry flag. kMad, kMadHi: the product's half is the first summand.
template <class T>
void with_carry(Warp& w, const Instruction& i, U32 lanes) {
  U32& carry = *w.at<U32>({w.code->carry, Ref::kRegister, 4});
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    auto operand = [&](int n) { return static_cast<T>(w.value(i.o[n], l)); };
    const bool product = i.op == Op::kMad || i.op == Op::kMadHi;
    const T a = i.op == Op::kMad     ? operand(1) * operand(2)
                : i.op == Op::kMadHi ? high(operand(1), operand(2))
                                     : operand(1);
    const T b = operand(product ? 3 : 2);
    const Unsigned128 in = i.carry_in ? carry >> l & 1 : 0;
    const Unsigned128 all =
        i.op == Op::kSub ? static_cast<Unsigned128>(a) - b - in : static_cast<Unsigned128>(a) + b + in;
    w.set(i.o[0], l, static_cast<T>(all));
    if (i.carry_out) carry = (carry & ~(1u << l)) | static_cast<U32>(all >> (8 * sizeof(T)) & 1) << l;
  }
}

template <auto F>
Execute signed_unary(const Instruction& i) {
  switch (i.type) {
    case Type::kS16:
      return each<[](S16 a) { return static_cast<S16>(F(U16(a), a < 0)); }, S16, S16>;
    case Type::kS32:
      return each<[](S32 a) { return static_cast<S32>(F(U32(a), a < 0)); }, S32, S32>;
    case Type::kS64:
      return each<[](S64 a) { return static_cast<S64>(F(U64(a), a < 0)); }, S64, S64>;
    default:
      return nullptr;
  }
}

} // namespace

Execute choose_integer(const Instruction& i) {
  if (i.carry_in || i.carry_out) {
    if (i.op == Op::kMul || i.saturate) return nullptr;
    return bytes_of(i.type) == 8 ? with_carry<U64> : bytes_of(i.type) == 4 ? with_carry<U32> : nullptr;
  }
  if (i.saturate) {
    if (i.type != Type::kS32) return nullptr;
    return i.op == Op::kAdd   ? each<kSaturatedSum, S32, S32, S32>
           : i.op == Op::kSub ? each<kSaturatedDifference, S32, S32, S32>
                              : nullptr;
  }
  switch (i.op) {
    case Op::kAdd:
      return binary<[](auto a, auto b) {
        using U = Unsigned<decltype(a)>;
        return static_cast<U>(U(a) + U(b));
      }>(i);
    case Op::kSub:
      return binary<[](auto a, auto b) {
        using U = Unsigned<decltype(a)>;
        return static_cast<U>(U(a) - U(b));
      }>(i);
    case Op::kMul:
      return binary<[](auto a, auto b) { return static_cast<U64>(a) * static_cast<U64>(b); }>(i);
    case Op::kMulHi:
      return high_product<false>(i);
    case Op::kMadHi:
      return high_product<true>(i);
    case Op::kMulWide:
      return wide_product<false>(i);
    case Op::kMadWide:
      return wide_product<true>(i);
    case Op::kMad:
      return low_product_and_sum(i);
    case Op::kDiv:
      return binary<kQuotient>(i);
    case Op::kRem:
      return binary<kRemainder>(i);
    case Op::kMin:
      return binary<[](auto a, auto b) { return (a < b) ? a : b; }>(i);
    case Op::kMax:
      return binary<[](auto a, auto b) { return (a > b) ? a : b; }>(i);
    case Op::kAbs:
      return signed_unary<[](auto a, bool negative) { return negative ? 0 - a : a; }>(i);
    case Op::kNeg:
      return signed_unary<[](auto a, bool) { return 0 - a; }>(i);
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
