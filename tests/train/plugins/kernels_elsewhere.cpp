// SPDX-License-Identifier: Apache-2.0
// kernels-elsewhere: a kernel set for a device that does not exist, for tests of preflight. Two ranks per machine have
// a device, with one megabyte each. Attention supports two heads at most. Activations in fp32 cannot be repeated.
#include <triax/cheap_recompute.hpp>
#include <triax/kernels.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_bool("throws", "false", "a defect: supports() of a call throws an Error"),
};

class Elsewhere final : public KernelSet, public RepeatLimits {
 public:
  explicit Elsewhere(const PluginContext& context) : throws_(context.options.flag("throws")) {}
  DeviceKind device_kind() const noexcept override { return DeviceKind::cuda; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall& call) const override {
    if (throws_) throw Error("no answer");
    if (call.op == Op::attention_fwd && call.as<AttentionFwd>().q.size(2) > 2)
      return make_refusal(ErrorCode::kUnsupported, {}, "attention of more than two heads").with_hint("use fewer");
    return {};
  }
  std::size_t scratch_bytes(const OpCall&) const override { return 0; }
  void prepare(const OpCall&) override {}
  void start(Device&) override {}
  Refusals device_available(const DeviceRequest& request) const override {
    if (request.local_rank >= 2)
      return make_refusal(ErrorCode::kNoDevice, {}, "rank {} of {} has no device", request.local_rank,
                          request.local_ranks)
          .with_hint("use two");
    if (request.bytes > 1e6) return make_refusal(ErrorCode::kOutOfMemory, {}, "a rank needs more than a megabyte");
    return {};
  }

  void* extension(std::string_view id) noexcept override {
    return id == RepeatLimits::kExtension ? static_cast<RepeatLimits*>(this) : nullptr;
  }
  Refusals repeats(const OpCall& primitive) const override {
    if (primitive.op != Op::act_fwd || primitive.as<ActFwd>().x.dtype() != DType::f32) return {};
    return make_refusal(ErrorCode::kUnsupported, {"memory.recompute"}, "activations in f32 cannot be repeated")
        .with_hint("use bf16");
  }

 private:
  const bool throws_;
};

} // namespace

TRIAX_PLUGIN(triax::KernelSet, Elsewhere, "kernels-elsewhere", "0.1.0", "computes on a device that is not there",
             kOptions)
