// SPDX-License-Identifier: Apache-2.0
// optim-noise: gradient descent in host memory that adds a random number to each element. The numbers depend on the
// parameter, the element and the step, so ranks that update parts of a parameter draw those of the whole.
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/random.hpp>

namespace {
using namespace triax;

constexpr PhiloxKey kKey = philox_key(7, RandomPurpose::test);

class NoisyDescent final : public Optimizer {
 public:
  explicit NoisyDescent(const PluginContext&) {}
  Refusals supports(const OptimizerRequest& request) const override {
    if (request.master == DType::f32 && request.device == DeviceKind::host) return {};
    return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "optim-noise updates f32 weights on the host");
  }
  OptimizerTraits traits() const override { return {}; }
  void prepare(std::span<const ParameterShard>) override {}
  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    args.op.stream.ready();
    for (const ParameterShard& shard : shards)
      if (shard.master.data()) update(shard, *args.scalars); // else a dry run
  }

 private:
  static void update(const ParameterShard& shard, const StepScalars& scalars) {
    if (scalars.skip != 0) return;
    const auto step = static_cast<std::uint32_t>(scalars.step);
    for (std::int64_t i = 0; i < shard.master.elements(); ++i) {
      const auto element = static_cast<std::uint64_t>(shard.first + i);
      const float noise = uniform(philox_at(kKey, element, shard.spec->site, step)[element % 4]) - 0.5f;
      shard.master.as<float>()[i] -= scalars.lr * (scalars.clip * shard.gradient.as<float>()[i] + noise);
    }
  }
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, NoisyDescent, "optim-noise", "0.1.0", "gradient descent with noise, in host memory",
             nullptr)
