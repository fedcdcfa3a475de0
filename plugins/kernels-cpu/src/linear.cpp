// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the linear layer, which applies bias and activation to each tile while it is in the cache.
#include "kernels.hpp"

namespace triax::kernels_cpu {

namespace {

/// Row stride. With a single row, its length is enough for oneDNN.
std::int64_t row_stride(const TensorView& x) {
  return x.size(-2) > 1 ? x.stride(-2) : std::max<std::int64_t>(x.size(-1), 1);
}

/// Size and stride of batch dimension 0 or 1; a missing one has size 1 and stride 0.
std::int64_t batch_size(const TensorView& x, int dim) {
  const int at = x.rank() - 4 + dim;
  return at < 0 ? 1 : x.size(at);
}
std::int64_t batch_stride(const TensorView& x, int dim) {
  const int at = x.rank() - 4 + dim;
  return at < 0 ? 0 : x.stride(at);
}

/// The product of the first matrices of a batch.
Product first_product(const Gemm& args) {
  return {.d = args.d.as<float>(),
          .a = args.a.as<const float>(),
          .b = args.b.as<const float>(),
          .ldd = row_stride(args.d),
          .lda = row_stride(args.a),
          .ldb = row_stride(args.b),
          .m = args.d.size(-2),
          .n = args.d.size(-1),
          .k = args.a.size(args.transpose_a ? -2 : -1),
          .transpose_a = args.transpose_a,
          .transpose_b = args.transpose_b,
          .alpha = static_cast<float>(args.alpha),
          .beta = static_cast<float>(args.beta)};
}

/// The product goes to z, or to y if there is no activation.
Gemm product_of(const LinearFwd& args) {
  const TensorView& to = args.act == Activation::none ? args.y : args.z;
  return {.d = to.as_rows(), .a = args.x.as_rows(), .b = args.w, .transpose_b = true};
}

} // namespace

std::size_t packing_scratch(const LinearFwd& args) {
  return packing_scratch(product_of(args));
}
std::size_t packing_scratch(const Gemm& args) {
  return args.d.rank() == 2 ? static_cast<std::size_t>(Packing::floats(first_product(args))) * sizeof(float) : 0;
}

Product CpuKernels::packed(const Product& product, const OpContext& context) {
  if (Packing::floats(product) == 0) return product;
  const Packing packing(product, reinterpret_cast<float*>(context.scratch.data()));
  pool_->run(packing.blocks(), [&](std::int64_t block, int) { packing.run(block, loops_); });
  return packing.product();
}

void CpuKernels::do_gemm(const Gemm& args, const OpContext& context) {
  const Product given = first_product(args), first = args.d.rank() == 2 ? packed(given, context) : given;
  const Tiles tiles = tiles_of(first);
  const std::int64_t inner = batch_size(args.d, 1), matrices = batch_size(args.d, 0) * inner;
  pool_->run(matrices * tiles.count(), [&](std::int64_t item, int) {
    const std::int64_t matrix = item / tiles.count(), i = matrix / inner, j = matrix % inner;
    Product product = first;
    product.d += i * batch_stride(args.d, 0) + j * batch_stride(args.d, 1);
    product.a += i * batch_stride(args.a, 0) + j * batch_stride(args.a, 1);
    product.b += i * batch_stride(args.b, 0) + j * batch_stride(args.b, 1);
    multiply(tile(product, tiles, item % tiles.count()), loops_);
  });
}

/// Calls body(element, column, n) for each row of each tile once it is computed: n elements from `element` on.
template <class Body>
void CpuKernels::multiply_rows(const Gemm& args, const OpContext& context, const Body& body) {
  const Product product = packed(first_product(args), context);
  const Tiles tiles = tiles_of(product);
  pool_->run(tiles.count(), [&](std::int64_t item, int) {
    const Product part = tile(product, tiles, item);
    multiply(part, loops_);
    const std::int64_t begin = part.d - product.d;
    for (std::int64_t r = 0; r < part.m; ++r) body(begin + r * part.ldd, begin % product.ldd, part.n);
  });
}

void CpuKernels::do_linear_fwd(const LinearFwd& args, const OpContext& context) {
  const Gemm product = product_of(args);
  float* z = product.d.as<float>();
  multiply_rows(product, context, [&](std::int64_t at, std::int64_t column, std::int64_t n) {
    const float* bias = args.bias.empty() ? nullptr : args.bias.as<const float>() + column;
    if (args.act == Activation::gelu_tanh) {
      loops_.bias_gelu(args.y.as<float>() + at, z + at, bias, n);
    } else if (bias) {
      loops_.add(z + at, z + at, bias, n);
    }
  });
  if (args.act == Activation::silu_mul) do_act_fwd({args.act, args.y, args.z}, context);
}

void CpuKernels::do_linear_bwd_input(const LinearBwdInput& args, const OpContext& context) {
  if (args.act != Activation::gelu_tanh) return KernelSet::do_linear_bwd_input(args, context);
  const Gemm product{.d = args.dx.as_rows(), .a = args.dy.as_rows(), .b = args.w};
  float* dx = product.d.as<float>();
  multiply_rows(product, context, [&](std::int64_t at, std::int64_t, std::int64_t n) {
    loops_.gelu_bwd(dx + at, dx + at, args.before.as<const float>() + at, n);
  });
}

} // namespace triax::kernels_cpu
