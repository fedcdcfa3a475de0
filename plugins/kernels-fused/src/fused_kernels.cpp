// SPDX-License-Identifier: Apache-2.0
// Construction of the set, its scratch, and linear layers with cuBLASLt.
#include "fused_kernels.hpp"

#include <algorithm>

#include "attention_plan.hpp"
#include "scratch.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

namespace {

/// Whether cuBLASLt can compute the bias gradient with the product: both have the same type.
bool has_fused_bias_gradient(const LinearBwdWeight& args) {
  return !args.dbias.empty() && args.dbias.dtype() == args.dw.dtype();
}

Refusals rows_supported(const EmbedBwd& args) {
  const std::int64_t rows = cuda::rows_of(args.dy);
  if (rows <= kMaxEmbeddingRows) return {};
  return make_refusal(ErrorCode::kTooLarge, {"batch.micro"},
                      "the gradient of an embedding of {} tokens: at most {} can be sorted", rows, kMaxEmbeddingRows)
      .with_hint("use a smaller microbatch, or kernels-cublas");
}

/// Shared memory that a block may have on the current GPU.
std::size_t max_shared_bytes() {
  int gpu = 0, bytes = 0;
  TRIAX_CUDA(cudaGetDevice(&gpu));
  TRIAX_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu));
  return static_cast<std::size_t>(bytes);
}

} // namespace

FusedKernels::FusedKernels(const PluginContext& context)
    : Primitives({.plugin = "kernels-fused", .tf32 = context.options.flag("tf32")}),
      separate_gelu_(context.options.flag("separate_gelu")) {}

void FusedKernels::start(Device& device) {
  Primitives::start(device);
  products_.start(settings().tf32);
  max_shared_bytes_ = max_shared_bytes();
}

Refusals FusedKernels::supports(const OpCall& call) const {
  if (call.op == Op::attention_fwd) return attention_supported(call.as<AttentionFwd>());
  if (call.op == Op::attention_bwd) return attention_supported(call.as<AttentionBwd>());
  Refusals out = Primitives::supports(call);
  if (call.op == Op::embed_bwd) out.add(rows_supported(call.as<EmbedBwd>()));
  return out;
}

Refusals FusedKernels::repeats(const OpCall& primitive) const {
  if (primitive.op != Op::act_fwd) return {};
  const auto& args = primitive.as<ActFwd>();
  if (!has_gelu_epilogue(args.act, args.x.dtype())) return {};
  return make_refusal(
             ErrorCode::kUnsupported, {"memory.recompute", "kernels.plugin"},
             "memory.recompute = \"cheap\": kernels-fused computes GELU in {} with the product, from values that "
             "are not rounded, and so cannot compute it again with the same bits",
             name_of(args.x.dtype()))
      .with_hint("set kernels.separate_gelu = true, or use memory.recompute = \"full\"");
}

bool FusedKernels::has_gelu_epilogue(Activation act, DType data) const {
  return applies(act, data) && !separate_gelu_;
}

LinearFwd FusedKernels::product_args(const LinearFwd& args) const {
  if (has_gelu_epilogue(args.act, args.x.dtype()) || !applies(args.act, args.x.dtype())) return args;
  return {.y = args.z, .x = args.x, .w = args.w, .bias = args.bias};
}

std::size_t FusedKernels::scratch_bytes(const OpCall& call) const {
  if (const std::optional<std::size_t> own = own_scratch(call)) return *own;
  const std::size_t of_default = Primitives::scratch_bytes(call); // for a linear layer, at least a product's workspace
  if (call.op != Op::linear_bwd_weight) return of_default;
  return std::max(of_default, cuda::kWorkspace + call.as<LinearBwdWeight>().dbias.bytes());
}

void FusedKernels::prepare(const OpCall& call) {
  const auto choose = [&](const Product& product) {
    // A planned run has no device, so no algorithm is selected.
    if (products_.started() && suits_lt(product)) products_.prepare(product.shape);
  };
  switch (call.op) {
    case Op::linear_fwd:
      return choose(product_of(product_args(call.as<LinearFwd>())));
    case Op::linear_bwd_input: // silu_mul uses the default
      if (const auto& args = call.as<LinearBwdInput>(); args.act != Activation::silu_mul) choose(product_of(args));
      return;
    case Op::linear_bwd_weight: {
      const auto& args = call.as<LinearBwdWeight>();
      if (has_fused_bias_gradient(args)) choose(with_bias_gradient(product_of(args), nullptr));
      return choose(product_of(args));
    }
    default:
      return Primitives::prepare(call);
  }
}

bool FusedKernels::multiply(const Product& product, const OpContext& context) {
  if (!suits_lt(product) || !products_.prepare(product.shape)) return false;
  products_.run(product, context.scratch, cuda::launch_stream(context.stream));
  return true;
}

void FusedKernels::do_linear_fwd(const LinearFwd& args, const OpContext& context) {
  if (!multiply(product_of(product_args(args)), context)) return Primitives::do_linear_fwd(args, context);
  if (args.act != Activation::none && !has_gelu_epilogue(args.act, args.x.dtype()))
    do_act_fwd({args.act, args.y, args.z}, context);
}

void FusedKernels::do_linear_bwd_input(const LinearBwdInput& args, const OpContext& context) {
  // With silu_mul the product is narrower than dx: the default writes it to scratch.
  if (args.act == Activation::silu_mul || !multiply(product_of(args), context))
    return Primitives::do_linear_bwd_input(args, context);
  if (args.act != Activation::none && !applies(args.act, args.dy.dtype()))
    do_act_bwd({args.act, args.dx, args.dx, args.before}, context);
}

/// cuBLASLt computes the bias gradient with the product, if it has an algorithm for both.
void FusedKernels::do_linear_bwd_weight(const LinearBwdWeight& args, const OpContext& context) {
  const Product product = product_of(args);
  const TensorView& dbias = args.dbias;
  if (has_fused_bias_gradient(args)) {
    std::byte* part = context.scratch.data() + cuda::kWorkspace;
    if (multiply(with_bias_gradient(product, part), context))
      return do_add({dbias, dbias, {part, dbias.dtype(), dbias.shape()}}, context);
  }
  if (!multiply(product, context)) return Primitives::do_linear_bwd_weight(args, context);
  if (!dbias.empty()) do_bias_bwd({dbias, args.dy}, context);
}

} // namespace triax::kernels_fused
