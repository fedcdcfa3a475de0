// SPDX-License-Identifier: Apache-2.0
// Operations on bf16 and f16: the inputs are converted to f32 in scratch, the operation runs in f32, and its outputs
// are rounded once.
//
// The caller runs the conversions. Errors: Error for an operation with more views than kMax.
//
//   UpcastViews views(scratch);            // without memory: counts
//   const Gemm wide = upcast(args, views); // the same call on f32 views; other views are unchanged
//   for (... : views.loads()) ...          // convert before; stores() after
#pragma once

#include <array>
#include <span>

#include "loops.hpp"
#include "triax/kernels.hpp"

namespace triax::kernels_cpu {

inline bool is_half(DType type) {
  return type == DType::bf16 || type == DType::f16;
}
/// `type` is bf16 or f16.
inline const HalfLoops& half_loops(const Loops& loops, DType type) {
  return type == DType::bf16 ? loops.bf16 : loops.f16;
}

class UpcastViews {
 public:
  struct Pair {
    TensorView narrow, wide;
  };

  explicit UpcastViews(std::span<std::byte> scratch) : data_(scratch.data()), left_(scratch.size()) {}

  TensorView read(const TensorView& view) { return add(view, true, false); }
  TensorView write(const TensorView& view) { return add(view, false, true); }
  TensorView update(const TensorView& view) { return add(view, true, true); }

  bool any() const { return taken_ > 0; }
  std::size_t taken() const { return taken_; }
  std::span<std::byte> rest() const { return {data_, left_}; }
  std::span<const Pair> loads() const { return {loads_.data(), load_count_}; }
  std::span<const Pair> stores() const { return {stores_.data(), store_count_}; }

 private:
  static constexpr std::size_t kMax = 12; // floating-point views of one operation
  TensorView add(const TensorView& view, bool load, bool store);

  std::byte* data_;
  std::size_t left_, taken_ = 0, load_count_ = 0, store_count_ = 0;
  std::array<Pair, kMax> loads_, stores_;
};

#define TRIAX_OP(Args, name) Args upcast(const Args& args, UpcastViews& to);
TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

} // namespace triax::kernels_cpu
