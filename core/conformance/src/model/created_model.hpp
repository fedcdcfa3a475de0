// SPDX-License-Identifier: Apache-2.0
// A model with its layers for one rank, without memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "triax/conformance/model_checks.hpp"

namespace triax::conformance {

/// Types, ranks and microbatch size with which a check creates the layers.
struct ModelShape {
  DType compute = DType::f32;
  int tensor = 1, pipeline = 1;
  bool sequence_parallel = false;
  std::int64_t micro = 2;
  Purpose purpose = Purpose::train;
  std::int64_t max_rows = 0; // of a call that generates; 0: all positions
};
std::string to_text(const ModelShape& shape); // "f64, 2 tensor ranks, parallel.sequence"
/// Type of gradients and master weights: f32 for 16-bit types.
DType master_type(DType compute);
ModelRequest request_of(const ModelShape& shape, std::int64_t vocab);

enum class Pass { forward, recompute, backward_input, backward_weight };
inline constexpr Pass kEveryPass[] = {Pass::forward, Pass::recompute, Pass::backward_input, Pass::backward_weight};
const char* name_of(Pass pass) noexcept;

/// The descriptions of a layer, as they were when it was created: so a layer that changes its answers does not
/// change the views.
struct LayerSpecs {
  explicit LayerSpecs(const Layer& layer);
  std::vector<ParamSpec> params;
  std::vector<StashSpec> stash;
  std::vector<TensorSpec> inputs, outputs;
};

/// The number of the output with this name. Throws Error if `producer` does not make it with this shape and type.
std::size_t find_output(const LayerSpecs& producer, const TensorSpec& input, std::string_view producer_name,
                        std::string_view consumer_name);

/// The views of a layer's calls.
struct LayerViews {
  std::vector<TensorView> params, grads, in, out, din, dout, stash;
};

bool is_data(const TensorSpec& spec);   // tokens and targets
bool is_result(const TensorSpec& spec); // loss and logits

class CreatedModel {
 public:
  /// The layers [first, end); end = -1: all from `first` on.
  CreatedModel(const ModelSubject& subject, const ModelShape& shape, int rank = 0, int first = 0, int end = -1);
  CreatedModel(const CreatedModel&) = delete;
  CreatedModel& operator=(const CreatedModel&) = delete;

  const ModelShape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  const LayerContext& context() const { return context_; }
  Model& model() const { return *model_; }
  int first() const { return first_; } // number in the model of the first layer
  std::size_t count() const { return layers_.size(); }
  Layer& layer(std::size_t at) const { return *layers_[at]; }
  const LayerSpecs& specs(std::size_t at) const { return specs_[at]; }
  std::string name(std::size_t at) const { return std::string(layers_[at]->name()); }
  bool is_block(std::size_t at) const;
  /// Whether an engine that trains may ask the layer for the pass: forwards are repeated in blocks only, if the model
  /// supports it for the shape.
  bool has_pass(Pass pass, std::size_t at) const;
  /// The RNG stream of a parameter's initial values (random.hpp): that of the first parameter that it is tied to.
  std::uint32_t value_site(std::size_t at, const ParamSpec& spec) const;
  /// All rows of a call in training.
  Rows all_rows() const { return {0, context_.max_rows}; }

  LayerViews views_without_data(std::size_t at) const;

 private:
  const ModelShape shape_;
  const Layout layout_;
  const Object<Model> model_;
  const LayerContext context_;
  const int first_;
  const bool may_repeat_; // forwards of blocks
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<LayerSpecs> specs_; // by layer
};

/// Runs a pass. A recomputed forward gets empty outputs.
void run_pass(Layer& layer, Pass pass, const LayerCall& call, const LayerViews& views);

} // namespace triax::conformance
