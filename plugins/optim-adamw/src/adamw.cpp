// SPDX-License-Identifier: Apache-2.0
// optim-adamw: Adam with decoupled weight decay (Loshchilov & Hutter, ICLR'19). StepScalars bring the learning rate,
// clipping, loss scale, step number and whether the step is skipped. The core owns weight decay and passes it with each
// step.
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/precision.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_float("beta1", "0.9", 0, 0.999999, "decay of the running mean of gradients"),
    option_float("beta2", "0.95", 0, 0.999999, "decay of the running mean of squared gradients"),
    option_float("eps", "1e-8", 1e-20, 1, "added to the root of the second moment"),
};

class AdamWOptimizer final : public Optimizer {
 public:
  explicit AdamWOptimizer(const PluginContext& context)
      : beta1_(context.options.number("beta1")),
        beta2_(context.options.number("beta2")),
        eps_(context.options.number("eps")) {}

  Refusals supports(const OptimizerRequest& request) const override {
    if (request.master != DType::f32 && request.master != DType::f64)
      return make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                          "optim-adamw keeps master weights in fp32 or fp64, not {}", precision_name(request.master));
    return {};
  }

  OptimizerTraits traits() const override { return {{"m", "v"}}; }

  void prepare(std::span<const ParameterShard> shards) override { calls_.resize(shards.size()); }

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) override {
    TRIAX_REQUIRE(shards.size() <= calls_.size(), "prepared for {} shards, called with {}", calls_.size(),
                  shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const ParameterShard& shard = shards[i];
      calls_[i] = {.master = shard.master,
                   .gradient = shard.gradient,
                   .m = shard.state[0],
                   .v = shard.state[1],
                   .working = shard.working,
                   .beta1 = beta1_,
                   .beta2 = beta2_,
                   .eps = eps_,
                   .decay = shard.spec->decay ? args.weight_decay : 0,
                   .scalars = args.scalars};
    }
    kernels.multi_adamw({std::span(calls_).first(shards.size())}, args.op);
  }

 private:
  double beta1_, beta2_, eps_;
  std::vector<AdamW> calls_; // one per shard of a call; prepare() allocates it, so that a step does not allocate
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, AdamWOptimizer, "optim-adamw", "0.1.0", "Adam with decoupled weight decay", kOptions)
