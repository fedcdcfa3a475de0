// SPDX-License-Identifier: Apache-2.0
// Norms, and reductions over whole tensors.
#include "cpu_kernels.hpp"

namespace triax::kernels_cpu {

namespace {

const float* given(const TensorView& view) {
  return view.empty() ? nullptr : view.as<const float>();
}

/// Pointer to the mean of row r; null for rms norm.
const float* mean_of(NormKind kind, const TensorView& mean, std::int64_t r) {
  return kind == NormKind::layer ? mean.as<const float>() + r : nullptr;
}

} // namespace

void CpuKernels::do_norm_fwd(const NormFwd& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1);
  const bool layer = args.kind == NormKind::layer;
  by_rows(rows_of(args.x), n, [&](std::int64_t r) {
    loops_.norm(args.y.as<float>() + r * n, args.x.as<const float>() + r * n, args.weight.as<const float>(),
                given(args.bias), n, static_cast<float>(args.eps), layer ? args.mean.as<float>() + r : nullptr,
                args.rstd.as<float>() + r);
  });
}

void CpuKernels::do_norm_bwd_input(const NormBwdInput& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1);
  const float* residual = given(args.residual);
  by_rows(rows_of(args.x), n, [&](std::int64_t r) {
    loops_.norm_bwd(args.dx.as<float>() + r * n, args.dy.as<const float>() + r * n, args.x.as<const float>() + r * n,
                    args.weight.as<const float>(), residual ? residual + r * n : nullptr, n,
                    mean_of(args.kind, args.mean, r), args.rstd.as<const float>()[r]);
  });
}

void CpuKernels::do_norm_bwd_weight(const NormBwdWeight& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1), rows = rows_of(args.x);
  by_columns(n, [&](std::int64_t column, std::int64_t count) {
    loops_.norm_bwd_weight(args.dweight.as<float>() + column,
                           args.dbias.empty() ? nullptr : args.dbias.as<float>() + column,
                           args.dy.as<const float>() + column, args.x.as<const float>() + column,
                           mean_of(args.kind, args.mean, 0), args.rstd.as<const float>(), rows, n, count);
  });
}

// Norms each row while it is in the cache.
void CpuKernels::do_bias_dropout_add_norm(const BiasDropoutAddNorm& args, const OpContext&) {
  const std::int64_t n = args.x.size(-1);
  const bool layer = args.kind == NormKind::layer;
  const DropStream stream(args.drop);
  by_rows(rows_of(args.x), n, [&](std::int64_t r) {
    float* y = args.y.as<float>() + r * n;
    const DropRow row = stream.drops() ? stream.row(r) : DropRow{};
    loops_.bias_dropout_add(y, args.x.as<const float>() + r * n, given(args.bias),
                            args.residual.as<const float>() + r * n, n, stream.drops() ? &row : nullptr);
    loops_.norm(args.normed.as<float>() + r * n, y, args.weight.as<const float>(), given(args.norm_bias), n,
                static_cast<float>(args.eps), layer ? args.mean.as<float>() + r : nullptr, args.rstd.as<float>() + r);
  });
}

void CpuKernels::do_sum_squares(const SumSquares& args, const OpContext& context) {
  const std::int64_t elements = args.x.elements();
  double* sums = reinterpret_cast<double*>(context.scratch.data());
  by_elements(elements, [&](std::int64_t begin, std::int64_t n) {
    sums[begin / kBlock] = loops_.sum_squares(args.x.as<const float>() + begin, n);
  });
  double total = 0;
  for (std::int64_t block = 0; block < blocks_of(elements); ++block) total += sums[block];
  *args.out.as<double>() = total;
}

} // namespace triax::kernels_cpu
