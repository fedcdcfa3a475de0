// SPDX-License-Identifier: Apache-2.0
// Runs a complete model-gpt layer by layer, without schedule or executor, for tests of the layers.
//
// Every tensor has its own memory, which is filled with NaN before and after the tensor's declared life. A layer that
// reads a tensor outside its declared life therefore computes NaN.
//
// Threads: one object per rank, on that rank's thread. Ownership: owns its memory.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"

namespace triax::model_gpt_test {

struct Setting {
  std::int64_t layers = 2, hidden = 8, heads = 4, sequence = 5, vocab = 11, micro = 2;
  double dropout = 0;
  DType compute = DType::f64;
  double amplitude = 0.4; // of the weights
  std::int64_t tokens() const { return micro * sequence; }
};

/// Positions in the corpus of the samples that a run computes.
inline const std::vector<std::int64_t> kSamples{3, 8};

/// The plugin's object for a setting, with the objects that it refers to.
class GptModel {
 public:
  explicit GptModel(const Setting& setting, const Layout& layout = Layout::ptd(1, 1, 1), int rank = 0);
  Model& operator*() const { return *model_; }
  Model* operator->() const { return model_.get(); }

 private:
  Options options_;
  Layout layout_;
  PluginContext context_;
  plugin::Instance<Model> model_;
};

/// An instance of kernels-reference; start() is not yet called.
plugin::Instance<KernelSet> reference_kernels();

struct Parameter {
  std::string name; // "block 0/mlp.up.weight"
  ParamSpec spec;
  TensorView value, gradient;
};

/// Global index of element `local` of a rank's part, or -1 in the padding.
std::int64_t global_element(const ParamSpec& spec, std::int64_t local);

/// A tensor's elements as double, from any type.
std::vector<double> values_of(const TensorView& view);

class GptRun {
 public:
  GptRun(const Setting& setting, Device& device, const Groups& groups = {}, const Layout& layout = Layout::ptd(1, 1, 1),
         int rank = 0);

  std::vector<Parameter>& parameters() { return parameters_; }
  Parameter& parameter(std::string_view name);
  KernelSet& kernels() { return *kernels_; }
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }

  /// Returns the loss of each sample. `samples` are the running numbers; the tokens of a sample depend on its number.
  std::vector<double> forward(std::span<const std::int64_t> samples, bool dropout = true);
  /// Mean loss over the tokens.
  double loss(std::span<const std::int64_t> samples);
  /// Adds the gradients of the mean loss. Runs the input gradients of all layers first and the weight gradients after
  /// them, as a schedule may.
  void backward();

 private:
  struct LayerMemory {
    std::vector<TensorView> params, grads, in, out, din, dout, stash;
  };
  void lay_out(Arena& arena);
  void initialise();
  void fill_tokens(std::span<const std::int64_t> samples);
  LayerCall call(bool dropout);
  void spoil(const TensorView& view);
  template <class Specs>
  void spoil_lives(const Specs& specs, std::span<const TensorView> views, std::initializer_list<Life> lives);

  Setting setting_;
  Layout layout_;
  int rank_;
  Device& device_;
  Groups groups_;
  GptModel model_;
  plugin::Instance<KernelSet> kernels_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<LayerMemory> memory_;
  std::vector<Parameter> parameters_;
  TensorView tokens_, targets_, samples_, loss_, scratch_;
  std::size_t scratch_bytes_ = 0;
  std::unique_ptr<Arena> arena_;
};

} // namespace triax::model_gpt_test
