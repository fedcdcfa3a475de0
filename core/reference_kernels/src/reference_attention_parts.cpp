// SPDX-License-Identifier: Apache-2.0
// Operations of attention over parts of the keys: delta of its backward, and the merge of two parts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Calls body(row, offset_x, offset_y) for each query of each head, in the order of the statistics [b, a, s]; the
/// offsets are those of its row in x and y [s, b, a, d].
template <class Body>
void for_each_query(const TensorView& x, const TensorView& y, const Body& body) {
  std::int64_t row = 0;
  for (std::int64_t b = 0; b < x.size(1); ++b) {
    for (std::int64_t a = 0; a < x.size(2); ++a) {
      for (std::int64_t s = 0; s < x.size(0); ++s) {
        body(row++, s * x.stride(0) + b * x.stride(1) + a * x.stride(2),
             s * y.stride(0) + b * y.stride(1) + a * y.stride(2));
      }
    }
  }
}

} // namespace

void ReferenceKernels::do_attention_delta(const AttentionDelta& args, const OpContext&) {
  by_type(args.o.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_query(args.dout, args.o, [&](std::int64_t row, std::int64_t at_dout, std::int64_t at_o) {
      const T *dout = args.dout.as<const T>() + at_dout, *o = args.o.as<const T>() + at_o;
      double sum = 0;
      for (std::int64_t i = 0; i < args.o.size(3); ++i) sum += static_cast<double>(dout[i]) * o[i];
      args.delta.as<T>()[row] = static_cast<T>(sum);
    });
  });
}

void ReferenceKernels::do_attention_merge(const AttentionMerge& args, const OpContext&) {
  by_type(args.o.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_query(args.o, args.o_more, [&](std::int64_t row, std::int64_t at_o, std::int64_t at_more) {
      T& lse = args.lse.as<T>()[row];
      const double one = lse, more = args.lse_more.as<const T>()[row], largest = std::max(one, more);
      const bool sees_none = one == -kInfinity && more == -kInfinity; // NaN is kept
      const double merged =
          sees_none ? largest : largest + std::log(std::exp(one - largest) + std::exp(more - largest));
      const double weight = std::exp(one - merged), weight_more = std::exp(more - merged);
      T* o = args.o.as<T>() + at_o;
      const T* o_more = args.o_more.as<const T>() + at_more;
      for (std::int64_t i = 0; i < args.o.size(3); ++i)
        o[i] = sees_none ? T{0} : static_cast<T>(weight * o[i] + weight_more * o_more[i]);
      lse = static_cast<T>(merged);
    });
  });
}

} // namespace triax::reference_kernels
