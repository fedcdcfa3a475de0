// SPDX-License-Identifier: Apache-2.0
// optim-trust: gradient descent in host memory, with the rate of a parameter scaled by |weights| / |gradient| of the
// whole parameter (You et al., "Large batch training of convolutional networks", arXiv 1708.03888, without momentum).
// An optimizer that needs values of whole parameters: it reads the description and adds over the axes that cut it.
#include <cmath>
#include <string>
#include <triax/optimizer.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

class Trust final : public Optimizer {
 public:
  explicit Trust(const PluginContext&) {}
  Refusals supports(const OptimizerRequest& request) const override {
    if (request.master == DType::f64 && request.device == DeviceKind::host) return {};
    return make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "optim-trust updates f64 weights on the host");
  }
  OptimizerTraits traits() const override { return {.state = {}, .elementwise = false}; }
  void prepare(std::span<const ParameterShard>) override {}

  /// The squares of weights and gradient of each shard; first those of parameters that the tensor axis cuts.
  std::size_t scratch_bytes(std::span<const ParameterShard> shards) const override {
    return 2 * shards.size() * sizeof(double);
  }

  void step(std::span<const ParameterShard> shards, const StepArgs& args, KernelSet&) override {
    std::int64_t cut = 0;
    for (const ParameterShard& shard : shards) cut += is_cut(shard) ? 1 : 0;
    Communicator* const tensor = args.groups.find(kTensorAxis);
    if (!shards.front().master.data()) { // dry run
      const TensorView unknown(nullptr, DType::f64, {2 * cut});
      if (tensor && cut > 0) tensor->all_reduce(unknown, unknown, Reduce::sum, args.op.stream, args.action);
      return;
    }
    args.op.stream.ready();
    auto* squares = reinterpret_cast<double*>(args.scratch.data());
    for (std::size_t i = 0, of_cut = 0, whole = static_cast<std::size_t>(cut); i < shards.size(); ++i) {
      double* const at = squares + 2 * (is_cut(shards[i]) ? of_cut++ : whole++);
      at[0] = square(shards[i].master);
      at[1] = square(shards[i].gradient);
    }
    if (tensor && cut > 0) {
      const TensorView values(squares, DType::f64, {2 * cut});
      tensor->wait(tensor->all_reduce(values, values, Reduce::sum, args.op.stream, args.action), args.op.stream);
      args.op.stream.ready();
    }
    if (args.scalars->skip != 0) return;
    for (std::size_t i = 0, of_cut = 0, whole = static_cast<std::size_t>(cut); i < shards.size(); ++i) {
      const double* const at = squares + 2 * (is_cut(shards[i]) ? of_cut++ : whole++);
      update(shards[i], at[0] > 0 && at[1] > 0 ? std::sqrt(at[0] / at[1]) : 1, args);
    }
  }

 private:
  static bool is_cut(const ParameterShard& shard) {
    for (const Cut& cut : shard.spec->cuts)
      if (cut.axis == kTensorAxis) return true;
    return false;
  }
  static double square(const TensorView& view) {
    double sum = 0;
    for (std::int64_t i = 0; i < view.elements(); ++i) sum += view.as<double>()[i] * view.as<double>()[i];
    return sum;
  }
  static void update(const ParameterShard& shard, double ratio, const StepArgs& args) {
    const double rate = static_cast<double>(args.scalars->lr) * ratio;
    for (std::int64_t i = 0; i < shard.master.elements(); ++i)
      shard.master.as<double>()[i] -= rate * shard.gradient.as<double>()[i];
  }
};

} // namespace

TRIAX_PLUGIN(triax::Optimizer, Trust, "optim-trust", "0.1.0", "gradient descent with trust ratios, in host memory",
             nullptr)
