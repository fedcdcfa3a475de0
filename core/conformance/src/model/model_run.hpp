// SPDX-License-Identifier: Apache-2.0
// Runs the passes of one rank of a model on the host, pass by pass. Each tensor has its own memory between guards, for
// each microbatch, so that a check can fill any of them between two passes.
//
// Threads: one; of several ranks, each has its own. Ownership: owns all memory, the model and its kernel set; borrows
// the device and communicators of a rank. Blocking: passes wait for the collectives of other ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "created_model.hpp"
#include "guarded_memory.hpp"
#include "named_tensors.hpp"
#include "recording_kernels.hpp"
#include "triax/cheap_recompute.hpp"
#include "triax/recompute_steps.hpp"

namespace triax::conformance {

/// A rank of several, or some of the layers.
struct RankPart {
  int rank = 0;
  Device* device = nullptr; // null: its own
  const Groups* groups = nullptr;
  int first = 0, end = -1; // layers; -1: to the last
};

/// The settings that all calls get.
struct CallSettings {
  bool dropout = true;
  double loss_gradient = 0.0625; // a power of two: exact
  std::optional<float> loss_scale;
  bool as_engine = false; // views of tensors outside their lifetime are empty
};

inline constexpr std::byte kNaN{0xFF}; // as every byte of a floating number

/// Whether a tensor with this lifetime can be used in a pass.
bool exists_in(Life life, Pass pass);

class ModelRun {
 public:
  static constexpr int kMicrobatches = 3;

  ModelRun(const ModelSubject& subject, const ModelShape& shape, const RankPart& part = {});

  const CreatedModel& model() const { return model_; }
  std::size_t count() const { return model_.count(); }
  const LayerViews& views(std::size_t at, int microbatch = 0) const { return layers_[at][index(microbatch)]; }
  RecordingKernels& kernels() { return kernels_; }
  Device& device() { return device_; }
  Stream& stream() { return *stream_; }
  CallSettings& settings() { return settings_; }
  TensorView targets(int microbatch = 0) const { return data_[index(microbatch)].targets; }

  /// Sets parameters, gradients (zeros), tokens and running numbers. Values depend on what they are of, not on the
  /// rank.
  void fill();
  /// The sequences of a microbatch and their running numbers.
  void put_samples(int microbatch, std::span<const std::int64_t> texts, std::span<const std::int64_t> numbers);
  /// Sets the inputs and output gradients of one layer, for checks of that layer alone.
  void fill_boundaries(std::size_t at, int microbatch = 0);
  void clear_gradients();

  void run(Pass pass, std::size_t at, int microbatch = 0);
  /// CheapRecompute::recompute() of a layer, with the views of its backward.
  void recompute(CheapRecompute& cheap, std::size_t at, int microbatch = 0);
  /// RecomputeSteps::recompute_step() of a layer, with these views and those of Life::forward_only.
  void recompute_step(RecomputeSteps& offered, int step, std::size_t at, int microbatch = 0);
  void forward(int microbatch = 0);
  void backward_input(int microbatch = 0);
  void backward_weight(int microbatch = 0);
  /// All passes of all microbatches, one after the other.
  void train();
  /// Positions of a call, for Purpose::generate: views have that many rows.
  void set_rows(const Rows& rows);

  /// Results by name: "head, loss, microbatch 1", "block 0, gradient of mlp.up.weight".
  Tensors losses() const;
  Tensors gradients() const;
  Tensors results() const; // both
  /// The results of one layer: outputs, input gradients, gradients of parameters.
  Tensors results_of(std::size_t at, int microbatch = 0) const;
  /// All tensors, in a fixed order.
  std::vector<std::vector<std::byte>> everything() const;
  /// Names of the tensors that have changed since everything(), without those of `may`.
  std::vector<std::string> changed(const std::vector<std::vector<std::byte>>& since,
                                   std::span<const TensorView> may) const;
  /// Fills all stash tensors, outputs, their gradients, and the scratch memory.
  void poison(std::byte value);
  void fill_scratch(std::byte value);
  static void fill_bytes(const TensorView& view, std::byte value);
  /// Names of the tensors whose guards were overwritten.
  std::vector<std::string> overwritten() const;

 private:
  struct Data {
    TensorView tokens, targets, samples;
  };
  static std::size_t index(int microbatch) { return static_cast<std::size_t>(microbatch); }
  TensorView tensor(const std::string& name, DType dtype, const Shape& shape);
  /// Requires what checks read: elements of parameters that exist, and the result of the last layer.
  void require_readable_specs() const;
  void allocate();
  void add_layer(std::size_t at, int microbatch);
  void add_parameters(std::size_t at, LayerViews& views);
  void add_input(std::size_t at, int microbatch, const TensorSpec& spec, LayerViews& views);
  TensorView activation(std::size_t at, int microbatch, const std::string& what, DType dtype, const Shape& shape);
  void plan_scratch();
  LayerCall call_of(int microbatch);
  LayerViews views_in_life(Pass pass, std::size_t at, int microbatch) const;

  CreatedModel model_;
  const std::unique_ptr<Device> own_device_;
  Device& device_;
  const Object<KernelSet> real_kernels_;
  RecordingKernels kernels_;
  const std::unique_ptr<Stream> stream_;
  const Groups no_groups_;
  const Groups& groups_;
  StepScalars scalars_;
  CallSettings settings_;
  Rows rows_;
  std::vector<std::pair<std::string, std::unique_ptr<GuardedMemory>>> memory_;
  std::vector<std::pair<std::string, TensorView>> named_;
  std::vector<Data> data_;                       // by microbatch
  std::vector<std::vector<LayerViews>> layers_;  // by layer and microbatch
  std::vector<std::vector<LayerViews>> of_rows_; // the same, for the rows of a call; empty: all rows
  std::unique_ptr<GuardedMemory> scratch_;
};

/// Empty, or why a rank's part is not in the whole parameter: "local [3, 4], global [3]".
std::string wrong_range(const ParamSpec& spec);
/// The index of element `local` of a rank's part in the whole parameter; -1: padding. The range must be right.
std::int64_t global_element(const ParamSpec& spec, std::int64_t local);
/// In (-1, 1), the same for equal arguments.
double drawn_value(std::uint32_t site, std::uint32_t sample, std::int64_t element);

} // namespace triax::conformance
