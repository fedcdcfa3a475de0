// SPDX-License-Identifier: Apache-2.0
// optim-host: gradient descent in a loop on the host, for optimizers that check where weights are. Its option selects a
// fault of its traits.
#include <limits>
#include <string>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_string("traits", "valid", "valid|reserved|twice|empty|path|many|changing|scratch",
                  "what is wrong with its traits or its scratch memory"),
};

class HostDescent final : public Optimizer {
 public:
  explicit HostDescent(const PluginContext& context) : traits_(context.options.text("traits")) {}
  Refusals supports(const OptimizerRequest& request) const override {
    if (request.master != DType::f32)
      return make_refusal(ErrorCode::kUnsupported, {}, "optim-host updates f32 weights, not {}",
                          name_of(request.master));
    if (request.device == DeviceKind::host) return {};
    return make_refusal(ErrorCode::kUnsupported, {},
                        "optim-host updates weights in host memory; they are on a {} device", name_of(request.device))
        .with_hint("use an optimizer that computes through the kernel set, or a kernel set on the host");
  }
  OptimizerTraits traits() const override {
    if (traits_ == "twice") return {{"m", "v", "m"}};
    if (traits_ == "reserved") return {{"m", "master"}};
    if (traits_ == "empty") return {{"m", ""}};
    if (traits_ == "path") return {{"../m"}};
    if (traits_ == "many") {
      OptimizerTraits out;
      for (int i = 0; i < 65; ++i) out.state.push_back("m" + std::to_string(i));
      return out;
    }
    if (traits_ == "changing") return {{++calls_ % 2 == 0 ? "m" : "v"}};
    return {};
  }
  std::size_t scratch_bytes(std::span<const ParameterShard>) const override {
    return traits_ == "scratch" ? std::numeric_limits<std::size_t>::max() : 0;
  }
  void prepare(std::span<const ParameterShard>) override {}
  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    for (const ParameterShard& shard : shards) {
      if (!shard.master.data() || args.scalars->skip != 0) continue; // without data: dry run
      const auto rate = static_cast<float>(args.scalars->lr * args.scalars->clip);
      for (std::int64_t i = 0; i < shard.master.elements(); ++i)
        shard.master.as<float>()[i] -= rate * shard.gradient.as<float>()[i];
    }
  }

 private:
  const std::string traits_;
  mutable int calls_ = 0;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, HostDescent, "optim-host", "0.1.0", "gradient descent in host memory", kOptions)
