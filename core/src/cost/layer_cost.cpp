// SPDX-License-Identifier: Apache-2.0
#include "cost/layer_cost.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "cost/cost_kernels.hpp"
#include "executor/dry_run_communicator.hpp"
#include "triax/cheap_recompute.hpp"

namespace triax::cost {

namespace {

using ViewList = std::vector<TensorView>;

TensorView without_data(DType dtype, const Shape& shape) {
  return {nullptr, dtype, shape};
}

template <class Specs>
ViewList views_of(const Specs& specs) {
  ViewList out;
  for (const auto& spec : specs) out.push_back(without_data(spec.dtype, spec.shape));
  return out;
}

/// Data and losses have no gradients.
ViewList gradients_of(std::span<const TensorSpec> specs) {
  ViewList out = views_of(specs);
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (!is_floating(specs[i].dtype) || specs[i].name == "loss") out[i] = {};
  return out;
}

/// The views, device and communicator with which a layer's passes run.
class LayerRun {
 public:
  LayerRun(Layer& layer, const LayerContext& context, CostKernels& kernels)
      : layer_(layer),
        kernels_(kernels),
        device_(make_dry_run_device(DeviceKind::sim)),
        stream_(device_->make_stream("cost")),
        tensor_(context.layout.group(context.rank, kTensorAxis)),
        in_(views_of(layer.inputs())),
        out_(views_of(layer.outputs())),
        dout_(gradients_of(layer.outputs())),
        din_(gradients_of(layer.inputs())),
        stash_(views_of(layer.stash())),
        samples_(without_data(DType::i64, {context.micro})),
        rows_{0, context.max_rows} {
    const DType master = context.compute == DType::f64 ? DType::f64 : DType::f32;
    for (const ParamSpec& spec : layer.params()) {
      params_.push_back(without_data(context.compute, spec.local));
      grads_.push_back(without_data(master, spec.local));
    }
    if (context.tensor_size() > 1) groups_.set(std::string(kTensorAxis), &tensor_);
  }

  void forward() { layer_.forward(call(), params_, in_, out_, stash_); }
  void backward_input() { layer_.backward_input(call(), params_, in_, dout_, din_, stash_, grads_); }
  void backward_weight() { layer_.backward_weight(call(), in_, stash_, grads_); }
  void recompute() {
    auto* const cheap = find_extension<CheapRecompute>(layer_);
    TRIAX_REQUIRE(cheap, "{} does not have the interface {}", layer_.name(), CheapRecompute::kExtension);
    cheap->recompute(call(), params_, in_, stash_);
  }
  void recompute_step(RecomputeSteps& offered, int step) { offered.recompute_step(call(), step, params_, in_, stash_); }
  std::vector<Collective> take_collectives() { return tensor_.take().collectives; }

 private:
  LayerCall call() {
    return {.device = *device_,
            .kernels = kernels_,
            .stream = *stream_,
            .scratch = {},
            .groups = groups_,
            .samples = samples_,
            .dropout = true,
            .scalars = &scalars_,
            .rows = rows_};
  }

  Layer& layer_;
  CostKernels& kernels_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  executor::DryRunCommunicator tensor_;
  Groups groups_;
  const StepScalars scalars_;
  const ViewList in_, out_, dout_, din_, stash_;
  ViewList params_, grads_;
  const TensorView samples_;
  const Rows rows_;
};

} // namespace

PassTime LayerCost::time_of(OperationTime operations, std::span<const Collective> posted,
                            const LayerContext& context) const {
  const GroupShape group = placed(context.tensor_size(), 1, cluster_.node.devices);
  double collectives_s = 0;
  for (const Collective& collective : posted) collectives_s += collectives_.seconds(collective, group);
  return {std::max(operations.seconds, operations.kernels * cluster_.device.host_launch_s.value), collectives_s};
}

std::vector<RepeatedTime> LayerCost::of_steps(Layer& layer, RecomputeSteps& offered, const LayerContext& context,
                                              const SupportsCall& asked) const {
  std::vector<RepeatedTime> out;
  for (std::size_t step = 0; step < offered.steps().size(); ++step) {
    CostKernels kernels(operations_, asked);
    LayerRun run(layer, context, kernels);
    run.recompute_step(offered, static_cast<int>(step));
    out.push_back({time_of(kernels.take(), run.take_collectives(), context), kernels.refusals()});
  }
  return out;
}

LayerTime LayerCost::of(Layer& layer, const LayerContext& context, const SupportsCall& asked) const {
  CostKernels kernels(operations_, asked);
  LayerRun run(layer, context, kernels);
  const auto take = [&] { return time_of(kernels.take(), run.take_collectives(), context); };
  LayerTime out;
  run.forward();
  out.forward = take();
  run.backward_input();
  out.input = take();
  run.backward_weight();
  out.weight = take();
  if (code_.overlaps_tensor) out.input.tensor_s = std::max(0.0, out.input.tensor_s - out.weight.compute_s);
  for (const ParamSpec& spec : layer.params()) out.parameters += static_cast<double>(spec.local.elements());
  for (const TensorSpec& spec : layer.outputs())
    out.boundary_bytes += static_cast<double>(without_data(spec.dtype, spec.shape).bytes());
  out.refusals = kernels.refusals();
  return out;
}

RepeatedTime LayerCost::of_recompute(Layer& layer, const LayerContext& context, const SupportsCall& asked) const {
  CostKernels kernels(operations_, asked);
  LayerRun run(layer, context, kernels);
  run.recompute();
  return {time_of(kernels.take(), run.take_collectives(), context), kernels.refusals()};
}

} // namespace triax::cost
