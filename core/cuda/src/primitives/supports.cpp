// SPDX-License-Identifier: Apache-2.0
// The device, the types and the scratch memory of the set.
#include "internal.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/precision.hpp"

namespace triax::cuda {

namespace {

Refusals in_types(std::string_view plugin, std::string_view what, DType type) {
  if (type == DType::f32 || type == DType::bf16 || type == DType::f16) return {};
  return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "{} computes in fp32, bf16 and fp16, but {} is {}",
                      plugin, what, precision_name(type))
      .with_hint("use train.precision fp32, bf16 or fp16, or a kernel set that computes in {}", precision_name(type));
}
Refusals only_f32(std::string_view plugin, std::string_view what, DType type) {
  if (type == DType::f32) return {};
  return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "{} updates weights in fp32, but {} is {}", plugin,
                      what, precision_name(type))
      .with_hint("use train.precision fp32, bf16 or fp16");
}

// The view whose type is that of the whole operation; call_of() has compared the others with it.
#define TRIAX_DATA(Args, member)                \
  const TensorView& data_of(const Args& args) { \
    return args.member;                         \
  }
TRIAX_DATA(Gemm, a)
TRIAX_DATA(BiasAdd, x)
TRIAX_DATA(BiasBwd, dy)
TRIAX_DATA(Add, a)
TRIAX_DATA(Dropout, x)
TRIAX_DATA(ActFwd, x)
TRIAX_DATA(ActBwd, x)
TRIAX_DATA(NormFwd, x)
TRIAX_DATA(NormBwdInput, x)
TRIAX_DATA(NormBwdWeight, x)
TRIAX_DATA(SoftmaxFwd, x)
TRIAX_DATA(SoftmaxBwd, y)
TRIAX_DATA(SoftmaxFromLse, x)
TRIAX_DATA(AttentionDelta, o)
TRIAX_DATA(AttentionMerge, o)
TRIAX_DATA(Rope, x)
TRIAX_DATA(EmbedFwd, y)
TRIAX_DATA(EmbedBwd, dy)
TRIAX_DATA(XentMax, logits)
TRIAX_DATA(XentSums, logits)
TRIAX_DATA(XentLoss, sum_exp)
TRIAX_DATA(XentBwd, logits)
TRIAX_DATA(SumSquares, x)
#undef TRIAX_DATA

template <class Args>
Refusals supports_args(std::string_view plugin, const Args& args) {
  return in_types(plugin, "the data", data_of(args).dtype());
}
template <class Args>
Refusals supports_update(std::string_view plugin, const Args& args) {
  Refusals out = only_f32(plugin, "the master", args.master.dtype());
  if (!args.working.empty()) out.add(in_types(plugin, "the working copy", args.working.dtype()));
  return out;
}
Refusals supports_args(std::string_view, const StepControl&) {
  return {};
}
Refusals supports_args(std::string_view plugin, const AdamW& args) {
  return supports_update(plugin, args);
}
Refusals supports_args(std::string_view plugin, const Sgd& args) {
  return supports_update(plugin, args);
}

} // namespace

Refusals Primitives::device_available(const DeviceRequest& request) const {
  return cuda::available(request);
}

std::unique_ptr<Device> Primitives::make_device(const DeviceRequest& request) const {
  return cuda::make_device(request);
}

Refusals Primitives::supports(const KernelRequest& request) const {
  Refusals out = in_types(settings_.plugin, "the compute type", request.compute);
  out.add(only_f32(settings_.plugin, "the type of the master weights", request.master));
  return out;
}

Refusals Primitives::supports(const OpCall& call) const {
  switch (call.op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return supports_args(settings_.plugin, call.as<Args>());
    TRIAX_PRIMITIVES(TRIAX_OP)
#undef TRIAX_OP
    default:
      return KernelSet::supports(call); // asks for its primitives
  }
}

std::size_t Primitives::scratch_bytes(const OpCall& call) const {
  switch (call.op) {
    case Op::gemm:
      return kWorkspace;
    case Op::bias_bwd:
      return scratch_of(call.as<BiasBwd>());
    case Op::norm_bwd_weight:
      return scratch_of(call.as<NormBwdWeight>());
    case Op::sum_squares:
      return scratch_of(call.as<SumSquares>());
    default:
      return KernelSet::scratch_bytes(call); // asks for its primitives
  }
}

} // namespace triax::cuda
