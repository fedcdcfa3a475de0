// SPDX-License-Identifier: Apache-2.0
// Bit instructions, predicates and comparisons.
#include "lanes.hpp"

namespace triax::gpu_stand_in::STAND_IN_ISA {

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// Predicates: all lanes in one word.
template <auto F>
void predicate2(Warp& w, const Instruction& i, U32 lanes) {
  set_predicate(w, i.o[0], F(*w.at<const U32>(i.o[1]), *w.at<const U32>(i.o[2])), lanes);
}
void predicate_not(Warp& w, const Instruction& i, U32 lanes) {
  set_predicate(w, i.o[0], ~*w.at<const U32>(i.o[1]), lanes);
}

template <auto F>
Execute logic(const Instruction& i) {
  if (i.type == Type::kPred) return predicate2<F>;
  switch (bytes_of(i.type)) {
    case 2:
    case 4:
      return each<[](U32 a, U32 b) { return F(a, b); }, U32, U32, U32>;
    case 8:
      return each<[](U64 a, U64 b) { return F(a, b); }, U64, U64, U64>;
    default:
      return nullptr;
  }
}

// Shifts by the width or more: all bits go; signed ones leave the sign.
template <class T, bool kLeft>
T shift(T a, U32 n) {
  constexpr U32 kWidth = 8 * sizeof(T);
  using Wide = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>,
                                  std::conditional_t<sizeof(T) == 8, U64, U32>>;
  const U32 within = n < kWidth ? n : kWidth - 1;
  if constexpr (kLeft)
    return n < kWidth ? static_cast<T>(static_cast<std::make_unsigned_t<Wide>>(a) << within) : T{0};
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(Wide{a} >> within);
  else
    return n < kWidth ? static_cast<T>(Wide{a} >> within) : T{0};
}

template <bool kLeft>
Execute choose_shift(const Instruction& i) {
  auto with = []<class T>(T) -> Execute { return each<[](T a, U32 n) { return shift<T, kLeft>(a, n); }, T, T, U32>; };
  switch (i.type) {
    case Type::kS16:
      return with(std::int16_t{});
    case Type::kB16:
    case Type::kU16:
      return with(std::uint16_t{});
    case Type::kS32:
      return with(std::int32_t{});
    case Type::kB32:
    case Type::kU32:
      return with(U32{});
    case Type::kS64:
      return with(std::int64_t{});
    case Type::kB64:
    case Type::kU64:
      return with(U64{});
    default:
      return nullptr;
  }
}

U64 reverse(U64 a, int width) {
  U64 r = 0;
  for (int n = 0; n < width; ++n) r |= (a >> n & 1) << (width - 1 - n);
  return r;
}

// Position of the highest bit that is not the sign; all ones where there is none.
void find_highest(Warp& w, const Instruction& i, U32 lanes) {
  const int width = 8 * bytes_of(i.type);
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    U64 a = w.value(i.o[1], l);
    if (is_signed(i.type) && (a >> (width - 1) & 1)) a = ~a;
    if (width == 32) a &= 0xFFFFFFFFu;
    const U32 top = a ? 63 - static_cast<U32>(__builtin_clzll(a)) : ~U32{0};
    w.set(i.o[0], l, a && i.sub ? width - 1 - top : top);
  }
}

template <class T>
T insert(T a, T b, U32 position, U32 length) {
  position &= 255;
  length &= 255;
  for (U32 n = 0; n < length && position + n < 8 * sizeof(T); ++n) {
    const T bit = T{1} << (position + n);
    b = (b & ~bit) | (a >> n & 1 ? bit : 0);
  }
  return b;
}

template <class T>
T extract(T a, U32 position, U32 length) {
  using U = std::make_unsigned_t<T>;
  constexpr U32 kTop = 8 * sizeof(T) - 1;
  position &= 255;
  length &= 255;
  const auto bits = static_cast<U>(a);
  const U32 last = position + length - 1 < kTop ? position + length - 1 : kTop;
  const U sign = std::is_signed_v<T> && length != 0 ? bits >> last & 1 : 0;
  U r = 0;
  for (U32 n = 0; n <= kTop; ++n) r |= (n < length && position + n <= kTop ? bits >> (position + n) & 1 : sign) << n;
  return static_cast<T>(r);
}

U32 permute(U32 a, U32 b, U32 selector) {
  const U64 both = a | static_cast<U64>(b) << 32;
  U32 r = 0;
  for (int n = 0; n < 4; ++n) {
    const U32 s = selector >> (4 * n) & 15;
    U32 byte = static_cast<U32>(both >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << (8 * n);
  }
  return r;
}

void lookup(Warp& w, const Instruction& i, U32 lanes) {
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const auto a = w.value(i.o[1], l), b = w.value(i.o[2], l), c = w.value(i.o[3], l), table = w.value(i.o[4], l);
    U32 r = 0;
    for (int n = 0; n < 32; ++n)
      r |= static_cast<U32>(table >> ((a >> n & 1) << 2 | (b >> n & 1) << 1 | (c >> n & 1)) & 1) << n;
    w.set(i.o[0], l, r);
  }
}

void funnel(Warp& w, const Instruction& i, U32 lanes) {
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const U64 both = (w.value(i.o[1], l) & 0xFFFFFFFFu) | w.value(i.o[2], l) << 32;
    U32 n = static_cast<U32>(w.value(i.o[3], l));
    n = i.sub & 2 ? (n < 32 ? n : 32) : n & 31;
    w.set(i.o[0], l, i.sub & 1 ? both >> n : both << n >> 32);
  }
}

template <class T, bool kFlush>
Execute compare_with(Compare how) {
  auto with = []<auto F>()->Execute {
    if constexpr (kFlush)
      return compare<[](T a, T b) { return F(flush(a), flush(b)); }, T>;
    else
      return compare<F, T>;
  };
  switch (how) {
    case Compare::kEq:
      return with.template operator()<[](T a, T b) { return a == b; }>();
    case Compare::kNe:
      return with.template operator()<[](T a, T b) { return (a < b) | (b < a); }>();
    case Compare::kLt:
      return with.template operator()<[](T a, T b) { return a < b; }>();
    case Compare::kLe:
      return with.template operator()<[](T a, T b) { return a <= b; }>();
    case Compare::kGt:
      return with.template operator()<[](T a, T b) { return b < a; }>();
    case Compare::kGe:
      return with.template operator()<[](T a, T b) { return b <= a; }>();
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (how) {
      case Compare::kEqu:
        return with.template operator()<[](T a, T b) { return !((a < b) | (b < a)); }>();
      case Compare::kNeu:
        return with.template operator()<[](T a, T b) { return a != b; }>();
      case Compare::kLtu:
        return with.template operator()<[](T a, T b) { return !(b <= a); }>();
      case Compare::kLeu:
        return with.template operator()<[](T a, T b) { return !(b < a); }>();
      case Compare::kGtu:
        return with.template operator()<[](T a, T b) { return !(a <= b); }>();
      case Compare::kGeu:
        return with.template operator()<[](T a, T b) { return !(a < b); }>();
      case Compare::kNum:
        return with.template operator()<[](T a, T b) { return (a == a) & (b == b); }>();
      case Compare::kNan:
        return with.template operator()<[](T a, T b) { return (a != a) | (b != b); }>();
      default:
        break;
    }
  }
  return nullptr;
}

template <class T>
void select(Warp& w, const Instruction& i, U32 lanes) {
  alignas(64) T results[kLanes];
  const T* a = w.at<const T>(i.o[1]);
  const T* b = w.at<const T>(i.o[2]);
  const U32 p = *w.at<const U32>(i.o[3]);
  for (int l = 0; l < kLanes; ++l) results[l] = p >> l & 1 ? a[l] : b[l];
  store_lanes(w.at<T>(i.o[0]), results, lanes);
}

} // namespace

Execute choose_bits(const Instruction& i) {
  const int bytes = bytes_of(i.type);
  switch (i.op) {
    case Op::kAnd:
      return logic<[](auto a, auto b) { return a & b; }>(i);
    case Op::kOr:
      return logic<[](auto a, auto b) { return a | b; }>(i);
    case Op::kXor:
      return logic<[](auto a, auto b) { return a ^ b; }>(i);
    case Op::kNot:
      if (i.type == Type::kPred) return predicate_not;
      if (bytes == 2)
        return each<[](std::uint16_t a) { return static_cast<std::uint16_t>(~a); }, std::uint16_t, std::uint16_t>;
      return bytes == 4   ? each<[](U32 a) { return ~a; }, U32, U32>
             : bytes == 8 ? each<[](U64 a) { return ~a; }, U64, U64>
                          : nullptr;
    case Op::kShl:
      return choose_shift<true>(i);
    case Op::kShr:
      return choose_shift<false>(i);
    case Op::kBrev:
      if (bytes == 8) return each<[](U64 a) { return reverse(a, 64); }, U64, U64>;
      return bytes == 4 ? each<[](U32 a) { return static_cast<U32>(reverse(a, 32)); }, U32, U32> : nullptr;
    case Op::kBfind:
      return bytes >= 4 ? find_highest : nullptr;
    case Op::kClz:
      if (bytes == 8) return each<[](U64 a) { return a ? static_cast<U32>(__builtin_clzll(a)) : 64; }, U32, U64>;
      return bytes == 4 ? each<[](U32 a) { return a ? static_cast<U32>(__builtin_clz(a)) : 32; }, U32, U32> : nullptr;
    case Op::kPopc:
      if (bytes == 8) return each<[](U64 a) { return static_cast<U32>(__builtin_popcountll(a)); }, U32, U64>;
      return bytes == 4 ? each<[](U32 a) { return static_cast<U32>(__builtin_popcount(a)); }, U32, U32> : nullptr;
    case Op::kBfi:
      if (bytes == 8)
        return each<[](U64 a, U64 b, U32 p, U32 n) { return insert(a, b, p, n); }, U64, U64, U64, U32, U32>;
      return bytes == 4 ? each<[](U32 a, U32 b, U32 p, U32 n) { return insert(a, b, p, n); }, U32, U32, U32, U32, U32>
                        : nullptr;
    case Op::kBfe: {
      auto with = []<class T>(T) -> Execute {
        return each<[](T a, U32 p, U32 n) { return extract(a, p, n); }, T, T, U32, U32>;
      };
      return i.type == Type::kU32   ? with(U32{})
             : i.type == Type::kS32 ? with(std::int32_t{})
             : i.type == Type::kU64 ? with(U64{})
             : i.type == Type::kS64 ? with(std::int64_t{})
                                    : nullptr;
    }
    case Op::kPrmt:
      return bytes == 4 ? each<[](U32 a, U32 b, U32 s) { return permute(a, b, s); }, U32, U32, U32, U32> : nullptr;
    case Op::kLop3:
      return bytes == 4 ? lookup : nullptr;
    case Op::kShf:
      return bytes == 4 ? funnel : nullptr;
    case Op::kSelp:
      return i.type == Type::kPred || bytes == 1 ? nullptr : bytes == 8 ? select<U64> : select<U32>;
    default:
      return nullptr;
  }
}

Execute choose_compare(const Instruction& i) {
  const auto how = static_cast<Compare>(i.sub);
  switch (i.type) {
    case Type::kF32:
      return i.ftz ? compare_with<float, true>(how) : compare_with<float, false>(how);
    case Type::kF64:
      return compare_with<double, false>(how);
    case Type::kS16:
      return compare_with<std::int16_t, false>(how);
    case Type::kU16:
    case Type::kB16:
      return compare_with<std::uint16_t, false>(how);
    case Type::kS32:
      return compare_with<std::int32_t, false>(how);
    case Type::kU32:
    case Type::kB32:
      return compare_with<U32, false>(how);
    case Type::kS64:
      return compare_with<std::int64_t, false>(how);
    case Type::kU64:
    case Type::kB64:
      return compare_with<U64, false>(how);
    default:
      return nullptr;
  }
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
