// SPDX-License-Identifier: Apache-2.0
// Bias, dropout and residual in one pass.
#include "bias_dropout_add.cuh"
#include "fused_kernels.hpp"

namespace triax::kernels_fused {

namespace {

/// One warp per row of up to 4 KiB, else one block.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    bias_dropout_add(const __grid_constant__ BiasDropoutAddRows<T> args, std::int64_t rows) {
  constexpr bool kAligned = Mapping::kAligned;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const DropRow philox_row = philox_row_of<kAligned>(args, row);
    // In 16 bits, two vectors in flight take 52 registers, and four take 72 (sm_80): four blocks are resident on an SM
    // instead of three.
    for_each_vec<T, Mapping, 2>(
        args.n, [&](std::int64_t column) { return load_operands<true, kAligned>(args, row, column); },
        [&](std::int64_t column, const Vecs<T, 2>& operands) {
          bias_dropout_add_store<kAligned>(args, row, philox_row, column, operands.of[0], operands.of[1]);
        });
  });
}

void launch_bias_dropout_add(Op op, const BiasDropoutAdd& args, const OpContext& context) {
  const std::int64_t n = args.x.size(-1), rows = cuda::rows_of(args.x);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const auto operands = bias_dropout_add_rows<T>(args);
    const auto launch = [&]<class Mapping>(Mapping) {
      launch_rows<Mapping>(op, context, rows, bias_dropout_add<T, Mapping>, operands, rows);
    };
    // Nothing is read twice, so nothing is kept.
    const bool aligned = aligned_rows(operands, rows, {&args.y, &args.x, &args.bias, &args.residual});
    if (n * static_cast<std::int64_t>(sizeof(T)) <= kMaxWarpRow) {
      aligned ? launch(RowMapping<kWarpSize, 0>{}) : launch(RowMapping<kWarpSize, 0, false>{});
    } else {
      aligned ? launch(RowMapping<kBlockSize, 0>{}) : launch(RowMapping<kBlockSize, 0, false>{});
    }
  });
}

} // namespace

void FusedKernels::do_bias_dropout_add(const BiasDropoutAdd& args, const OpContext& context) {
  launch_bias_dropout_add(Op::bias_dropout_add, args, context);
}

/// Attention scores [b, a, sq, sk] take the primitives' kernel.
void FusedKernels::do_dropout(const Dropout& args, const OpContext& context) {
  if (args.drop.p == 0 || args.x.rank() == 4) return Primitives::do_dropout(args, context);
  launch_bias_dropout_add(Op::dropout, {args.y, args.x, {}, {}, args.drop}, context);
}

} // namespace triax::kernels_fused
