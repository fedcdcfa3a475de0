// SPDX-License-Identifier: Apache-2.0
// Lookup of table rows by token, and the addition of gradients to them.
#include <algorithm>

#include "reference_types.hpp"
#include "triax/reference_kernels.hpp"

namespace triax::reference_kernels {

void ReferenceKernels::do_embed_fwd(const EmbedFwd& args, const OpContext&) {
  by_type(args.y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t h = args.y.size(-1);
    for (std::int64_t r = 0; r < rows_of(args.y); ++r) {
      const std::int64_t row = args.tokens.as<const std::int32_t>()[r] - args.begin;
      T* y = args.y.as<T>() + r * h;
      if (row < 0 || row >= args.valid) {
        std::fill(y, y + h, T{0});
      } else {
        const T* from = args.table.as<const T>() + row * h;
        std::copy(from, from + h, y);
      }
    }
  });
}

void ReferenceKernels::do_embed_bwd(const EmbedBwd& args, const OpContext&) {
  by_type(args.dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t h = args.dy.size(-1);
    for (std::int64_t r = 0; r < rows_of(args.dy); ++r) {
      const std::int64_t row = args.tokens.as<const std::int32_t>()[r] - args.begin;
      if (row < 0 || row >= args.valid) continue;
      const T* dy = args.dy.as<const T>() + r * h;
      T* to = args.dtable.as<T>() + row * h;
      for (std::int64_t j = 0; j < h; ++j) to[j] = static_cast<T>(static_cast<double>(to[j]) + dy[j]);
    }
  });
}

} // namespace triax::reference_kernels
