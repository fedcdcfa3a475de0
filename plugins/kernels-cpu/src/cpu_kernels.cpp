// SPDX-License-Identifier: Apache-2.0
// The kernel set's construction, the types and operations that it supports, and the scratch that it needs.
#include "cpu_kernels.hpp"

#include "triax/precision.hpp"

namespace triax::kernels_cpu {

namespace {

Refusals refusal_of(DType type, const std::string& message) {
  return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "{}", message)
      .with_hint("use train.precision fp32, bf16 or fp16, or a kernel set that computes in {}", precision_name(type));
}
Refusals f32_or_half(std::string_view what, DType type) {
  if (type == DType::f32 || is_half(type)) return {};
  return refusal_of(
      type, text("kernels-cpu does not support {} {}; supported: fp32, and bf16 or fp16 with fp32 arithmetic", what,
                 precision_name(type)));
}
Refusals f32_master(DType type) {
  if (type == DType::f32) return {};
  return refusal_of(type, text("master weights must be fp32 for kernels-cpu, got {}", precision_name(type)));
}

// The view that determines the type of the operation. call_of() has checked the other views against it.
const TensorView& data_of(const Gemm& args) {
  return args.a;
}
const TensorView& data_of(const BiasAdd& args) {
  return args.x;
}
const TensorView& data_of(const BiasBwd& args) {
  return args.dy;
}
const TensorView& data_of(const Add& args) {
  return args.a;
}
const TensorView& data_of(const Dropout& args) {
  return args.x;
}
const TensorView& data_of(const ActFwd& args) {
  return args.x;
}
const TensorView& data_of(const ActBwd& args) {
  return args.x;
}
const TensorView& data_of(const NormFwd& args) {
  return args.x;
}
const TensorView& data_of(const NormBwdInput& args) {
  return args.x;
}
const TensorView& data_of(const NormBwdWeight& args) {
  return args.x;
}
const TensorView& data_of(const SoftmaxFwd& args) {
  return args.x;
}
const TensorView& data_of(const SoftmaxBwd& args) {
  return args.y;
}
const TensorView& data_of(const SoftmaxFromLse& args) {
  return args.x;
}
const TensorView& data_of(const AttentionDelta& args) {
  return args.o;
}
const TensorView& data_of(const AttentionMerge& args) {
  return args.o;
}
const TensorView& data_of(const Rope& args) {
  return args.x;
}
const TensorView& data_of(const EmbedFwd& args) {
  return args.y;
}
const TensorView& data_of(const EmbedBwd& args) {
  return args.dy;
}
const TensorView& data_of(const XentMax& args) {
  return args.logits;
}
const TensorView& data_of(const XentSums& args) {
  return args.logits;
}
const TensorView& data_of(const XentLoss& args) {
  return args.sum_exp;
}
const TensorView& data_of(const XentBwd& args) {
  return args.logits;
}
const TensorView& data_of(const SumSquares& args) {
  return args.x;
}
// Master, gradient and state have one type; the working copy may have another.
const TensorView& data_of(const AdamW& args) {
  return args.working.empty() ? args.master : args.working;
}
const TensorView& data_of(const Sgd& args) {
  return args.working.empty() ? args.master : args.working;
}

template <class Args>
Refusals supports_args(const Args& args) {
  return f32_or_half("data of type", data_of(args).dtype());
}
Refusals supports_args(const AdamW& args) {
  Refusals out = f32_master(args.master.dtype());
  out.add(f32_or_half("a working copy of type", data_of(args).dtype()));
  return out;
}
Refusals supports_args(const Sgd& args) {
  Refusals out = f32_master(args.master.dtype());
  out.add(f32_or_half("a working copy of type", data_of(args).dtype()));
  return out;
}
// Its inputs are f64 in every kernel set.
Refusals supports_args(const StepControl&) {
  return {};
}

int threads_of(const PluginContext& context) {
  const auto asked = static_cast<int>(context.options.integer("threads"));
  return std::max(asked > 0 ? asked : context.threads, 1);
}

std::size_t bytes(std::int64_t count, std::size_t of) {
  return static_cast<std::size_t>(count) * of;
}

} // namespace

CpuKernels::CpuKernels(const PluginContext& context) : CpuKernels(threads_of(context), best_loops()) {
  context.log.debug("kernels-cpu: {} loops, {} threads", loops_.name, threads_);
}

void CpuKernels::start(Device& device) {
  pool_ = std::make_unique<Pool>(threads_, ProgressPoll(device));
}

Refusals CpuKernels::supports(const KernelRequest& request) const {
  Refusals out = f32_or_half("compute type", request.compute);
  out.add(f32_master(request.master));
  return out;
}

Refusals CpuKernels::supports(const OpCall& call) const {
  switch (call.op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return supports_args(call.as<Args>());
    TRIAX_PRIMITIVES(TRIAX_OP)
#undef TRIAX_OP
    default:
      return KernelSet::supports(call); // asks for the primitives that it is made of
  }
}

std::size_t CpuKernels::scratch_of_f32(const OpCall& call) const {
  switch (call.op) {
    case Op::gemm:
      return product_scratch(call.as<Gemm>());
    case Op::linear_fwd:
      return product_scratch(call.as<LinearFwd>());
    case Op::rope:
      return bytes((1 + threads_) * call.as<Rope>().x.size(3), sizeof(float)); // frequencies; angles of a thread
    case Op::sum_squares:
      return bytes(blocks_of(call.as<SumSquares>().x.elements()), sizeof(double));
    case Op::attention_fwd:
      return bytes(threads_, attention_scratch(call.as<AttentionFwd>()));
    case Op::attention_bwd:
      return bytes(threads_, attention_scratch(call.as<AttentionBwd>()));
    case Op::bias_dropout_add:
    case Op::bias_dropout_add_norm:
      return 0; // fused: no temporary as in the core's default
    default:
      return KernelSet::scratch_bytes(call);
  }
}

template <class Args>
std::size_t CpuKernels::scratch_of(const Args& args) const {
  UpcastViews views({});
  const Args wide = upcast(args, views);
  return views.taken() + scratch_of_f32(call_of(wide));
}

std::size_t CpuKernels::scratch_bytes(const OpCall& call) const {
  switch (call.op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return scratch_of(call.as<Args>());
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  }
  return 0;
}

/// Converts the inputs to f32, runs the f32 operation, and converts its outputs back.
template <class Args>
void CpuKernels::run_as(const Args& args, const OpContext& context) {
  UpcastViews views(context.scratch);
  const Args wide = upcast(args, views);
  TRIAX_REQUIRE(views.taken() <= context.scratch.size(),
                "{}: {} bytes of scratch are given, but the conversion to fp32 needs {}", name_of(call_of(args).op),
                context.scratch.size(), views.taken());
  for (const auto& [narrow, f32] : views.loads()) convert(f32, narrow);
  KernelSet::run(call_of(wide), {context.stream, views.rest()});
  for (const auto& [narrow, f32] : views.stores()) convert(narrow, f32);
}

// In 16 bits, activations and norms read what the operation has rounded, so that they can be repeated (clause K56).
void CpuKernels::run_linear(const LinearFwd& args, const OpContext& context) {
  if (args.act == Activation::none || !is_half(args.x.dtype())) return run_as(args, context);
  run_as(LinearFwd{.y = args.z, .x = args.x, .w = args.w, .bias = args.bias}, context);
  run_as(ActFwd{args.act, args.y, args.z}, context);
}

void CpuKernels::run_norm(const BiasDropoutAddNorm& args, const OpContext& context) {
  if (!is_half(args.x.dtype())) return run_as(args, context);
  run_as(BiasDropoutAdd{args.y, args.x, args.bias, args.residual, args.drop}, context);
  run_as(NormFwd{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps}, context);
}

void CpuKernels::run(const OpCall& call, const OpContext& context) {
  if (call.op == Op::linear_fwd) return run_linear(call.as<LinearFwd>(), context);
  if (call.op == Op::bias_dropout_add_norm) return run_norm(call.as<BiasDropoutAddNorm>(), context);
  switch (call.op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return run_as(call.as<Args>(), context);
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  }
}

void CpuKernels::convert(const TensorView& to, const TensorView& from) {
  const bool widens = to.dtype() == DType::f32;
  const TensorView &narrow = widens ? from : to, &wide = widens ? to : from;
  const HalfLoops& loops = half_loops(loops_, narrow.dtype());
  const std::int64_t n = narrow.size(-1);
  const auto row = [&](std::int64_t r) {
    std::int64_t offset = 0, rest = r;
    for (int dim = narrow.rank() - 2; dim >= 0; --dim) {
      offset += rest % narrow.size(dim) * narrow.stride(dim);
      rest /= narrow.size(dim);
    }
    auto* bits = narrow.as<std::uint16_t>() + offset;
    float* values = wide.as<float>() + r * n;
    widens ? loops.widen(values, bits, n) : loops.narrow(bits, values, n);
  };
  by_rows(rows_of(narrow), n, row);
}

} // namespace triax::kernels_cpu
