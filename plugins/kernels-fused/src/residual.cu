// SPDX-License-Identifier: Apache-2.0
// Bias, dropout and residual in one pass.
#include "kernels.hpp"
#include "residual.cuh"

namespace triax::kernels_fused {

namespace {

template <class T, class Layout>
__global__ void __launch_bounds__(kBlockSize, kMinBlocks)
    add_residual(const __grid_constant__ ResidualRows<T> input, std::int64_t rows) {
  for_each_row<Layout>(rows, [&](std::int64_t row) {
    const DropRow here = input.template row<Layout>(row);
    for_each_vec<T, Layout, 2>(
        input.n, [&](std::int64_t at) { return input.template load<Layout>(row, at); },
        [&](int, std::int64_t at, const Vecs<T, 2>& loaded) { input.template make<Layout>(row, here, at, loaded); });
  });
}

} // namespace

void FusedKernels::do_bias_dropout_add(const BiasDropoutAdd& args, const OpContext& context) {
  const std::int64_t n = args.x.size(-1), rows = cuda::rows_of(args.x);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const ResidualRows<T> input = residual_rows<T>(args);
    const auto launch = [&]<class Layout>(Layout) {
      launch_rows<Layout>(Op::bias_dropout_add, context, rows, add_residual<T, Layout>, input, rows);
    };
    // Nothing is read twice, so nothing is kept.
    const bool aligned = aligned_rows(input, rows, {&args.y, &args.x, &args.bias, &args.residual});
    if (n * static_cast<std::int64_t>(sizeof(T)) <= kMaxWarpRow) {
      aligned ? launch(RowLayout<kWarpSize, 0>{}) : launch(RowLayout<kWarpSize, 0, false>{});
    } else {
      aligned ? launch(RowLayout<kBlockSize, 0>{}) : launch(RowLayout<kBlockSize, 0, false>{});
    }
  });
}

/// Of attention scores [b, a, sq, sk]: the primitives' kernel.
void FusedKernels::do_dropout(const Dropout& args, const OpContext& context) {
  if (args.drop.p == 0 || args.x.rank() == 4) return Primitives::do_dropout(args, context);
  do_bias_dropout_add({args.y, args.x, {}, {}, args.drop}, context);
}

} // namespace triax::kernels_fused
