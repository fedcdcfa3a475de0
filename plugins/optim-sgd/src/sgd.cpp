// SPDX-License-Identifier: Apache-2.0
// optim-sgd: stochastic gradient descent, with optional momentum. StepScalars bring the learning rate, clipping, loss
// scale, step number and whether the step is skipped. The core owns weight decay and passes it with each step.
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/precision.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_float("momentum", "0", 0, 0.999999, "decay of the running sum of gradients; 0 keeps no state"),
};

class SgdOptimizer final : public Optimizer {
 public:
  explicit SgdOptimizer(const PluginContext& context) : momentum_(context.options.number("momentum")) {}

  Refusals supports(const OptimizerRequest& request) const override {
    if (request.master != DType::f32 && request.master != DType::f64)
      return make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                          "optim-sgd keeps master weights in fp32 or fp64, not {}", precision_name(request.master));
    return {};
  }

  OptimizerTraits traits() const override {
    return {momentum_ == 0 ? std::vector<std::string>{} : std::vector<std::string>{"velocity"}};
  }

  void prepare(std::span<const ParameterShard>) override {}

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet& kernels) override {
    for (const ParameterShard& shard : shards)
      kernels.sgd({shard.master, shard.gradient, momentum_ == 0 ? TensorView{} : shard.state[0], shard.working,
                   momentum_, shard.spec->decay ? args.weight_decay : 0, args.scalars},
                  args.op);
  }

 private:
  double momentum_;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, SgdOptimizer, "optim-sgd", "0.1.0", "gradient descent, with or without momentum",
             kOptions)
