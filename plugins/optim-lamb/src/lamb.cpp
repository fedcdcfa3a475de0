// SPDX-License-Identifier: Apache-2.0
// optim-lamb: LAMB (You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", ICLR'20,
// algorithm 2). AdamW's direction of each parameter is scaled by its trust ratio, |weights| / |direction|, of the
// global tensor.
#include <algorithm>
#include <cmath>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>
#include <triax/precision.hpp>

#include "parameter_sums.hpp"
#include "update.hpp"

namespace {
using namespace triax;
using namespace triax::optim_lamb;

constexpr triax_option kOptions[] = {
    option_float("beta1", "0.9", 0, 0.999999, "decay of the running mean of gradients"),
    option_float("beta2", "0.999", 0, 0.999999, "decay of the running mean of squared gradients"),
    option_float("eps", "1e-6", 1e-20, 1, "added to the root of the second moment"),
    option_bool("bias_correction", "true", "divide the running means by 1 - beta^step"),
    option_float("min_trust_ratio", "0", 0, 1e30, "smallest trust ratio"),
    option_float("max_trust_ratio", "10", 0, 1e30, "largest trust ratio"),
    option_string("adapt", "all", "all|decayed",
                  "parameters with a trust ratio: all, or those to which weight decay applies"),
};

class LambOptimizer final : public Optimizer {
 public:
  explicit LambOptimizer(const PluginContext& context)
      : beta1_(context.options.number("beta1")),
        beta2_(context.options.number("beta2")),
        eps_(context.options.number("eps")),
        min_ratio_(context.options.number("min_trust_ratio")),
        max_ratio_(context.options.number("max_trust_ratio")),
        corrects_bias_(context.options.flag("bias_correction")),
        adapts_all_(context.options.text("adapt") == "all"),
        sums_(context.layout) {}

  Refusals supports(const OptimizerRequest& request) const override {
    Refusals out;
    if (request.device != DeviceKind::host)
      out.add(make_refusal(ErrorCode::kUnsupported, {"optimizer.plugin", "kernels.plugin"},
                           "optim-lamb computes in host memory; the weights are on the device \"{}\"",
                           name_of(request.device))
                  .with_hint("use a kernel set for the host, or optim-adamw"));
    if (request.master != DType::f32 && request.master != DType::f64)
      out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                           "optim-lamb keeps master weights in fp32 or fp64, not {}", precision_name(request.master))
                  .with_hint("set train.precision to fp32, fp64, bf16 or fp16"));
    if (min_ratio_ > max_ratio_)
      out.add(make_refusal(ErrorCode::kOutOfRange, {"optimizer.min_trust_ratio", "optimizer.max_trust_ratio"},
                           "optimizer.min_trust_ratio = {} must be at most optimizer.max_trust_ratio = {}", min_ratio_,
                           max_ratio_)
                  .with_hint("exchange the two values"));
    return out;
  }

  OptimizerTraits traits() const override {
    return {.state = {"m", "v"}, .elementwise = false, .adds_over_group = true};
  }

  void prepare(std::span<const ParameterShard> shards) override { sums_.prepare(shards); }

  std::size_t scratch_bytes(std::span<const ParameterShard> shards) const override {
    return sums_.scratch_bytes(shards);
  }

  /// A skipped step adds zeros: all steps post the same collectives.
  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    const std::span<double> sums = ParameterSums::of(shards, args);
    if (sums.empty()) return sums_.add(shards, args); // dry run
    args.op.stream.ready();
    const bool skip = args.scalars->skip != 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      SquareSums own;
      if (!skip) {
        const Coefficients of = coefficients(shards[i], args);
        update_means(shards[i], of);
        own = sum_squares(shards[i], of);
      }
      sums[2 * i] = own.weights;
      sums[2 * i + 1] = own.direction;
    }
    sums_.add(shards, args);
    if (skip) return;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const double ratio = trust_ratio(shards[i], {sums[2 * i], sums[2 * i + 1]});
      update_weights(shards[i], coefficients(shards[i], args), static_cast<double>(args.scalars->lr) * ratio);
    }
  }

 private:
  Coefficients coefficients(const ParameterShard& shard, const StepArgs& args) const {
    const auto step = static_cast<double>(args.scalars->step);
    return {.beta1 = beta1_,
            .beta2 = beta2_,
            .eps = eps_,
            .correction1 = corrects_bias_ ? 1 / (1 - std::pow(beta1_, step)) : 1,
            .correction2 = corrects_bias_ ? 1 / (1 - std::pow(beta2_, step)) : 1,
            .decay = shard.spec->decay ? args.weight_decay : 0,
            .clip = static_cast<double>(args.scalars->clip)};
  }

  /// 1 if a norm is 0, so that biases that start at 0 learn.
  double trust_ratio(const ParameterShard& shard, const SquareSums& of) const {
    const bool adapts = adapts_all_ || shard.spec->decay;
    if (!adapts || of.weights == 0 || of.direction == 0) return 1;
    return std::clamp(std::sqrt(of.weights) / std::sqrt(of.direction), min_ratio_, max_ratio_);
  }

  double beta1_, beta2_, eps_, min_ratio_, max_ratio_;
  bool corrects_bias_, adapts_all_;
  ParameterSums sums_;
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, LambOptimizer, "optim-lamb", "0.1.0", "LAMB: AdamW with a trust ratio per parameter",
             kOptions)
