// SPDX-License-Identifier: Apache-2.0
// optim-template: Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, arXiv 2302.06675, program
// 1). With g the clipped gradient:
//
//   p -= lr * (sign(beta1 m + (1 - beta1) g) + decay p)
//   m = beta2 m + (1 - beta2) g
//
// Its loops are its own and run over host memory. An optimizer for GPUs uses the operations of the kernel set.
#include <triax/element_type.hpp>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/precision.hpp>

namespace {
using namespace triax;

// lr and weight_decay are keys of the core, which passes them with each step.
constexpr triax_option kOptions[] = {
    option_float("beta1", "0.9", 0, 1, "weight of the momentum in the update"),
    option_float("beta2", "0.99", 0, 1, "decay of the momentum"),
};

class Lion final : public Optimizer {
 public:
  // Only stores arguments. The options are already parsed and checked.
  explicit Lion(const PluginContext& context)
      : beta1_(context.options.number("beta1")), beta2_(context.options.number("beta2")) {}

  // Called before training starts. All reasons at once, so that none hides another.
  Refusals supports(const OptimizerRequest& request) const override {
    Refusals out;
    if (request.device != DeviceKind::host)
      out.add(make_refusal(ErrorCode::kUnsupported, {"optimizer.plugin", "kernels.plugin"},
                           "optim-template computes in host memory; the weights are on the device \"{}\"",
                           name_of(request.device))
                  .with_hint("use a kernel set for the host, or optim-adamw"));
    if (request.master != DType::f32 && request.master != DType::f64)
      out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                           "optim-template keeps master weights in fp32 or fp64, not {}",
                           precision_name(request.master)));
    return out;
  }

  // The engine allocates the state, sets it to zero, and saves it in checkpoints.
  OptimizerTraits traits() const override { return {{"momentum"}}; }

  void prepare(std::span<const ParameterShard>) override {}

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    args.op.stream.ready(); // earlier work on the stream writes the gradients and the scalars
    for (const ParameterShard& shard : shards) {
      if (!shard.master.data()) continue;  // dry run: views without memory
      if (args.scalars->skip != 0) return; // a gradient was not finite: nothing changes
      const double decay = shard.spec->decay ? args.weight_decay : 0;
      with_type_among<float, double>(shard.master.dtype(), [&]<class T>(T) { update<T>(shard, *args.scalars, decay); });
      with_type_among<float, double>(shard.master.dtype(), [&]<class T>(T) { write_working<T>(shard); });
    }
  }

 private:
  /// All views have the type of the master weights. Each element depends on its own values only, so the parts that a
  /// parameter is cut into do not show.
  template <class T>
  void update(const ParameterShard& shard, const StepScalars& now, double decay) const {
    T *p = shard.master.as<T>(), *m = shard.state[0].as<T>();
    const T* gradient = shard.gradient.as<const T>();
    for (std::int64_t i = 0; i < shard.master.elements(); ++i) {
      const double g = static_cast<double>(gradient[i]) * now.clip, momentum = m[i];
      const double direction = beta1_ * momentum + (1 - beta1_) * g;
      const double sign = direction > 0 ? 1 : direction < 0 ? -1 : 0;
      p[i] = static_cast<T>(p[i] - now.lr * (sign + decay * p[i]));
      m[i] = static_cast<T>(beta2_ * momentum + (1 - beta2_) * g);
    }
  }

  /// The layers read the working weights: the new values, rounded to their type.
  template <class T>
  static void write_working(const ParameterShard& shard) {
    if (shard.working.empty()) return; // they read the master weights
    const T* p = shard.master.as<const T>();
    with_type_among<float, double, Bf16, F16>(shard.working.dtype(), [&]<class W>(W) {
      for (std::int64_t i = 0; i < shard.working.elements(); ++i) shard.working.as<W>()[i] = static_cast<W>(p[i]);
    });
  }

  double beta1_, beta2_;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, Lion, "optim-template", "0.1.0", "Lion: the sign of a momentum", kOptions)
