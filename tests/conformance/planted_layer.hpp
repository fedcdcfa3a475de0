// SPDX-License-Identifier: Apache-2.0
// A layer of model-gpt with one fault.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <triax/cheap_recompute.hpp>
#include <triax/recompute_steps.hpp>
#include <vector>

namespace triax::model_planted {

class PlantedLayer final : public Layer, public CheapRecompute, public RecomputeSteps {
 public:
  /// `object`: number of the model's object.
  PlantedLayer(std::unique_ptr<Layer> layer, const LayerContext& context, std::string fault, int object);

  std::string_view name() const override { return layer_->name(); }
  std::span<const ParamSpec> params() const override { return params_; }
  std::span<const StashSpec> stash() const override { return stash_; }
  std::span<const TensorSpec> inputs() const override { return inputs_; }
  std::span<const TensorSpec> outputs() const override { return outputs_; }
  Cost cost() const override;

  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override;
  void backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                      Views grads) override;
  void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) override;

  void* extension(std::string_view id) noexcept override {
    if (id == RecomputeSteps::kExtension) return offered_ ? static_cast<RecomputeSteps*>(this) : nullptr;
    return id == CheapRecompute::kExtension && cheap_ ? static_cast<CheapRecompute*>(this) : nullptr;
  }
  std::span<const int> recomputed_stash() const override { return recomputed_; }
  void recompute(const LayerCall& call, Views params, Views in, Views stash) override;
  std::span<const RecomputeStep> steps() const override { return steps_; }
  void recompute_step(const LayerCall& call, int step, Views params, Views in, Views stash) override;

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }
  void change_descriptions(int object);
  void change_axes();
  void change_steps();
  void add_parameter(std::int64_t elements);
  LayerCall changed(const LayerCall& call);
  void spoil_gradients(const LayerCall& call, Views grads) const;

  const std::unique_ptr<Layer> layer_;
  CheapRecompute* const cheap_;   // of the layer; null: none
  RecomputeSteps* const offered_; // the same
  const LayerContext context_;
  const std::string fault_;
  std::vector<ParamSpec> params_;
  std::vector<StashSpec> stash_;
  std::vector<TensorSpec> inputs_, outputs_;
  std::vector<int> recomputed_;
  std::vector<RecomputeStep> steps_;
  std::vector<TensorView> last_in_, last_stash_;
  std::vector<std::int64_t> numbers_;
  std::unique_ptr<int> kept_;
  const Groups no_groups_;
  int calls_ = 0;
};

} // namespace triax::model_planted
