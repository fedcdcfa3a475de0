// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the linear layer, which applies bias and activation to elements that are in the cache.
#include "cpu_kernels.hpp"
#include "packed_product.hpp"

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

std::int64_t inner_batch(const Gemm& args) {
  return batch_size(args.d, 1);
}
std::int64_t matrices(const Gemm& args) {
  return batch_size(args.d, 0) * inner_batch(args);
}

/// `first`, with the matrices of product `index` of the batch.
Product of_batch(const Gemm& args, Product first, std::int64_t index) {
  const std::int64_t i = index / inner_batch(args), j = index % inner_batch(args);
  first.d += i * batch_stride(args.d, 0) + j * batch_stride(args.d, 1);
  first.a += i * batch_stride(args.a, 0) + j * batch_stride(args.a, 1);
  first.b += i * batch_stride(args.b, 0) + j * batch_stride(args.b, 1);
  return first;
}

/// The threads that share the tiles of one product of the batch.
int threads_of_a_product(const Gemm& args, int threads) {
  const std::int64_t products = std::max<std::int64_t>(matrices(args), 1);
  return static_cast<int>((threads + products - 1) / products);
}

/// The product goes to z, or to y if there is no activation.
Gemm product_of(const LinearFwd& args) {
  const TensorView& to = args.act == Activation::none ? args.y : args.z;
  return {.d = to.as_rows(), .a = args.x.as_rows(), .b = args.w, .transpose_b = true};
}

/// Bytes between the scratch of two threads.
std::size_t bytes_of_thread(const PackedTiles& tiles) {
  return Arena::aligned(static_cast<std::size_t>(tiles.scratch_floats()) * sizeof(float));
}

} // namespace

std::size_t CpuKernels::product_scratch(const LinearFwd& args) const {
  return product_scratch(product_of(args));
}
std::size_t CpuKernels::product_scratch(const Gemm& args) const {
  const Product product = first_product(args);
  if (PackedTiles::serves(product, loops_)) {
    const PackedTiles tiles(product, loops_, threads_of_a_product(args, threads_));
    return static_cast<std::size_t>(threads_) * bytes_of_thread(tiles);
  }
  return args.d.rank() == 2 ? static_cast<std::size_t>(Packing::floats(product)) * sizeof(float) : 0;
}

void CpuKernels::multiply_packed(const Gemm& args, const OpContext& context, const Epilogue& epilogue) {
  const Product first = first_product(args);
  const PackedTiles tiles(first, loops_, threads_of_a_product(args, threads_));
  const std::size_t bytes = bytes_of_thread(tiles);
  pool_->run(matrices(args) * tiles.count(), [&](std::int64_t item, int thread) {
    auto* scratch = reinterpret_cast<float*>(context.scratch.data() + static_cast<std::size_t>(thread) * bytes);
    tiles.run(item % tiles.count(), of_batch(args, first, item / tiles.count()), scratch, epilogue);
  });
}

void CpuKernels::multiply_by_library(const Gemm& args, const OpContext& context, const Epilogue& epilogue) {
  Product first = first_product(args);
  if (args.d.rank() == 2 && Packing::floats(first) > 0) {
    const Packing packing(first, reinterpret_cast<float*>(context.scratch.data()));
    pool_->run(packing.blocks(), [&](std::int64_t block, int) { packing.run(block, loops_); });
    first = packing.product();
  }
  const Tiles tiles = tiles_of(first);
  pool_->run(matrices(args) * tiles.count(), [&](std::int64_t item, int) {
    const Product product = of_batch(args, first, item / tiles.count());
    const Product part = tile(product, tiles, item % tiles.count());
    kernels_cpu::multiply(part, loops_);
    const std::int64_t begin = part.d - product.d;
    loops_.finish(epilogue, product.d, part.ldd, begin / part.ldd, begin % part.ldd, part.m, part.n);
  });
}

void CpuKernels::multiply(const Gemm& args, const OpContext& context, const Epilogue& epilogue) {
  if (PackedTiles::serves(first_product(args), loops_)) return multiply_packed(args, context, epilogue);
  multiply_by_library(args, context, epilogue);
}

void CpuKernels::do_gemm(const Gemm& args, const OpContext& context) {
  multiply(args, context, {});
}

void CpuKernels::do_linear_fwd(const LinearFwd& args, const OpContext& context) {
  Epilogue epilogue;
  if (!args.bias.empty()) epilogue.bias = args.bias.as<const float>();
  if (args.act == Activation::gelu_tanh) epilogue.gelu = args.y.as<float>();
  multiply(product_of(args), context, epilogue);
  if (args.act == Activation::silu_mul) do_act_fwd({args.act, args.y, args.z}, context);
}

void CpuKernels::do_linear_bwd_input(const LinearBwdInput& args, const OpContext& context) {
  if (args.act != Activation::gelu_tanh) return KernelSet::do_linear_bwd_input(args, context);
  multiply({.d = args.dx.as_rows(), .a = args.dy.as_rows(), .b = args.w}, context,
           {.gelu_bwd = args.before.as<const float>()});
}

} // namespace triax::kernels_cpu
