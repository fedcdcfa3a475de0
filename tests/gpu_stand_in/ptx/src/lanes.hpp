// SPDX-License-Identifier: Apache-2.0
// Loops over the lanes of a warp, which become vector code. Compiled once per instruction set.
#pragma once

#include <tuple>
#include <utility>

#include "numbers.hpp"
#include "warp.hpp"

// Checks are compiled into each access, where sizes are constants and loops become vector code.
#define STAND_IN_INLINE [[gnu::always_inline]] inline

namespace triax::gpu_stand_in::STAND_IN_ISA {

template <auto F, class R, class... A, std::size_t... N>
inline void each_lane(Warp& w, const Instruction& i, std::uint32_t lanes, std::index_sequence<N...>) {
  Word<R>* const to = w.at<Word<R>>(i.o[0]);
  const std::tuple<const Word<A>*...> from{w.at<const Word<A>>(i.o[N + 1])...};
  if (lanes == kAllLanes) {
    // The result is a separate register, or the same lanes as an operand.
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) to[l] = put<R>(F(get<A>(std::get<N>(from)[l])...));
    return;
  }
  alignas(64) Word<R> results[kLanes];
  for (int l = 0; l < kLanes; ++l) results[l] = put<R>(F(get<A>(std::get<N>(from)[l])...));
  store_lanes(to, results, lanes);
}

// F takes operands of types A and gives a result of type R.
template <auto F, class R, class... A>
void each(Warp& w, const Instruction& i, std::uint32_t lanes) {
  each_lane<F, R, A...>(w, i, lanes, std::index_sequence_for<A...>{});
}

inline void set_predicate(Warp& w, Ref ref, std::uint32_t values, std::uint32_t lanes) {
  std::uint32_t* p = w.at<std::uint32_t>(ref);
  *p = (*p & ~lanes) | (values & lanes);
}

// F compares two operands of type T.
template <auto F, class T>
void compare(Warp& w, const Instruction& i, std::uint32_t lanes) {
  const auto* a = w.at<const Word<T>>(i.o[1]);
  const auto* b = w.at<const Word<T>>(i.o[2]);
  std::uint32_t values = 0;
  for (int l = 0; l < kLanes; ++l) values |= static_cast<std::uint32_t>(F(get<T>(a[l]), get<T>(b[l]))) << l;
  set_predicate(w, i.o[0], values, lanes);
}

// By kind of instruction; null: not known with these types.
Execute choose_float(const Instruction& i);
Execute choose_integer(const Instruction& i);
Execute choose_bits(const Instruction& i);
Execute choose_compare(const Instruction& i);
Execute choose_convert(const Instruction& i);
Execute choose_move(const Instruction& i);
Execute choose_warp(const Instruction& i);
Execute choose_access(const Instruction& i);
Execute choose_atomic(const Instruction& i);
Execute choose_copy(const Instruction& i);
Execute choose_matrix(const Instruction& i);

} // namespace triax::gpu_stand_in::STAND_IN_ISA
