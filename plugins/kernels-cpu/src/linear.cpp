// Products of matrices, and the linear layer with its bias and activation applied to each tile while it is in the
// cache.
#include "kernels.hpp"

namespace triax::cpu {

namespace {

/// Distance between rows; of a single row any will do that is long enough.
std::int64_t row_stride(const TensorView& x) {
  return x.size(-2) > 1 ? x.stride(-2) : std::max<std::int64_t>(x.size(-1), 1);
}

/// Size and stride of batch dimension 0 or 1, of which a matrix has up to two.
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

/// z, or y where there is no activation.
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
  const Tiles tiles = tiles_of(first.m, first.n, first.k);
  const std::int64_t inner = batch_size(args.d, 1), matrices = batch_size(args.d, 0) * inner;
  pool_->run(matrices * tiles.count(), [&](std::int64_t item, int) {
    const std::int64_t matrix = item / tiles.count(), i = matrix / inner, j = matrix % inner;
    Product product = first;
    product.d += i * batch_stride(args.d, 0) + j * batch_stride(args.d, 1);
    product.a += i * batch_stride(args.a, 0) + j * batch_stride(args.a, 1);
    product.b += i * batch_stride(args.b, 0) + j * batch_stride(args.b, 1);
    multiply(tile(product, tiles, item % tiles.count()));
  });
}

void CpuKernels::do_linear_fwd(const LinearFwd& args, const OpContext& context) {
  const bool gelu = args.act == Activation::gelu_tanh;
  const Product product = packed(first_product(product_of(args)), context);
  const Tiles tiles = tiles_of(product.m, product.n, product.k);
  pool_->run(tiles.count(), [&](std::int64_t item, int) {
    const Product part = tile(product, tiles, item);
    multiply(part);
    const std::int64_t offset = part.d - product.d;
    const float* bias = args.bias.empty() ? nullptr : args.bias.as<const float>() + offset % product.ldd;
    for (std::int64_t r = 0; r < part.m; ++r) {
      float* z = part.d + r * part.ldd;
      if (gelu) {
        loops_.bias_gelu(args.y.as<float>() + offset + r * part.ldd, z, bias, part.n);
      } else if (bias) {
        loops_.add(z, z, bias, part.n);
      }
    }
  });
  if (args.act == Activation::silu_mul) do_act_fwd({args.act, args.y, args.z}, context);
}

} // namespace triax::cpu
