// SPDX-License-Identifier: Apache-2.0
#include "train/cheap_recompute_check.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "executor/split.hpp"
#include "plugin/call_guard.hpp"
#include "train/listed_parts.hpp"
#include "train/rank_setup.hpp"
#include "triax/cheap_recompute.hpp"
#include "triax/text.hpp"

namespace triax::train {

namespace {

void add_once(Refusals& to, const Refusals& refusals) {
  for (const Refusal& refusal : refusals)
    if (std::ranges::find(to, refusal) == to.end()) to.add(refusal);
}

/// Runs nothing: asks for each call whether its bits can be repeated.
class RepeatQuestions final : public KernelSet {
 public:
  RepeatQuestions(const RepeatLimits& limits, const std::string& plugin) : limits_(limits), plugin_(plugin) {}
  DeviceKind device_kind() const noexcept override { return DeviceKind::sim; }
  using KernelSet::supports;
  Refusals supports(const KernelRequest&) const override { return {}; }
  void start(Device&) override {}
  const Refusals& refusals() const { return refusals_; }

 protected:
  void run(const OpCall& call, const OpContext&) override {
    add_once(refusals_, plugin::guarded_call(plugin_, "repeats", [&] { return limits_.repeats(call); }));
  }

 private:
  const RepeatLimits& limits_;
  const std::string& plugin_;
  Refusals refusals_;
};

template <class Specs>
std::vector<TensorView> views_without_data(const Specs& specs) {
  std::vector<TensorView> out;
  for (const auto& spec : specs) out.emplace_back(nullptr, spec.dtype, spec.shape);
  return out;
}

void dry_run(const Layer& layer, CheapRecompute& cheap, const LayerContext& context, KernelSet& kernels) {
  const std::unique_ptr<Device> device = make_dry_run_device(DeviceKind::sim);
  const std::unique_ptr<Stream> stream = device->make_stream("recompute");
  const Groups groups; // without collectives
  std::vector<TensorView> params;
  for (const ParamSpec& spec : layer.params()) params.emplace_back(nullptr, context.compute, spec.local);
  const LayerCall call{.device = *device,
                       .kernels = kernels,
                       .stream = *stream,
                       .scratch = {},
                       .groups = groups,
                       .samples = {nullptr, DType::i64, {context.micro}},
                       .rows = {0, context.max_rows}};
  cheap.recompute(call, params, views_without_data(layer.inputs()), views_without_data(layer.stash()));
}

/// Whether the layer has the interface, and lists the same tensors at each call, which it can recompute.
Refusals check_interface(const config::RunConfig& run, Layer& block) {
  const auto* const cheap = find_extension<CheapRecompute>(block);
  if (!cheap)
    return make_refusal(ErrorCode::kUnsupported, {"memory.recompute", "model.plugin"},
                        "memory.recompute = \"cheap\": {} of {} cannot recompute a part of what it keeps", block.name(),
                        run.model.name)
        .with_hint("use memory.recompute = \"none\" or \"full\"");
  return check_listed(
      run, block, "recomputed_stash", "tensors", [cheap] { return cheap->recomputed_stash(); },
      [&block](const std::vector<int>& tensors) { return executor::wrong_recomputed_stash(block, tensors); });
}

/// Refusals of the kernel set, whose block has the interface.
Refusals check_repeats(const config::RunConfig& run, Layer& block, const LayerContext& context,
                       const RankPlugins& plugins) {
  const auto* const limits = find_extension<RepeatLimits>(plugins.kernels());
  if (!limits) return {};
  RepeatQuestions kernels(*limits, run.kernels.name);
  plugin::guarded_call(run.model.name, "recompute",
                       [&] { dry_run(block, *find_extension<CheapRecompute>(block), context, kernels); });
  return kernels.refusals();
}

} // namespace

Refusals check_cheap_block(const config::RunConfig& run, Layer& block, const LayerContext& context,
                           const RankPlugins& plugins) {
  Refusals out = check_interface(run, block);
  if (!out.empty()) return out;
  Refusals repeats = check_repeats(run, block, context, plugins);
  for (Refusal& refusal : repeats) // of_kernels() names the kernel set in those without keys
    if (!refusal.keys.empty() && !refusal.message.empty())
      refusal.message = text("kernels.plugin \"{}\": {}", run.kernels.name, refusal.message);
  return of_kernels(run, repeats);
}

Refusals check_cheap_recompute(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins) {
  if (!run.memory.recompute.any("cheap")) return {};
  const Model& model = plugins.model();
  const LayerContext context = layer_context(run, model, layout, 0);
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  Refusals out;
  for (int number = blocks.begin; number < blocks.end; ++number) {
    const std::unique_ptr<Layer> block =
        plugin::guarded_call(run.model.name, "layer", [&] { return model.layer(number, context); });
    if (Refusals wrong = check_interface(run, *block); !wrong.empty()) return wrong;
    add_once(out, of_kernels(run, check_repeats(run, *block, context, plugins)));
  }
  return out;
}

} // namespace triax::train
