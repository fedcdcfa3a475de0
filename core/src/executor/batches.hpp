// SPDX-License-Identifier: Apache-2.0
// The data of a step: tokens, targets and sample numbers of every microbatch, and the resulting losses.
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: both functions read samples, and wait
// until the device has read the host buffers that they overwrite. Errors: stage(): those of the source.
//
// Global microbatch k*d + r is the k-th of sample rank r of d: the index in the group of all axes that divide samples,
// which is the data axis in most layouts. Sample numbers continue from step to step. Only sample numbers
// are needed on ranks whose layers read neither tokens nor targets; they do not ask the source.
//
// The host has two sets of buffers: one for training steps, into which the samples of the next step are read once the
// device has its copy, and one for evaluations in between.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/batch_source.hpp"
#include "executor/memory.hpp"

namespace triax::executor {

struct BatchShape {
  std::int64_t microbatches = 1, micro = 1, sequence = 1;                     // of this rank
  int sample_ranks = 1, sample_rank = 0;                                      // of the axes that divide samples
  std::int64_t global() const { return microbatches * micro * sample_ranks; } // samples per step
  std::int64_t tokens() const { return global() * sequence; }
};

/// Where the losses of a rank and its request to stop lie in one tensor, which goes to all ranks: first the losses of
/// all samples. The values of several ranks follow each other.
struct StepValues {
  explicit StepValues(const BatchShape& of) : losses(of.microbatches * of.micro) {}
  std::int64_t losses; // of a rank
  std::int64_t count() const { return losses + 1; }
  std::int64_t loss(std::int64_t rank, std::int64_t sample) const { return rank * count() + sample; }
  std::int64_t request(std::int64_t rank) const { return rank * count() + losses; }
};

/// Which of the source's tensors the layers of a rank read.
struct BatchInputs {
  bool tokens = true, targets = true;
  bool any() const { return tokens || targets; }
};

/// One microbatch in device memory.
struct MicrobatchViews {
  TensorView tokens, targets; // i32 [s, b]; empty on the device if no layer reads them, see BatchInputs
  TensorView samples;         // i64 [b]
  TensorView result;          // written by the last layer: loss f64 [b], or logits
};

class Batches {
 public:
  explicit Batches(const BatchShape& shape) : shape_(shape) {}
  const BatchShape& shape() const { return shape_; }
  /// Before assign_memory().
  void set_inputs(const BatchInputs& inputs) { inputs_ = inputs; }
  void assign_memory(RankMemory& memory);
  const MicrobatchViews& of(int microbatch) const { return device_.each[static_cast<std::size_t>(microbatch)]; }

  /// Fills all microbatches; `first` is the number of the global batch's first sample.
  void stage(BatchSource& source, std::int64_t first, Device& device, Stream& stream, Deadline deadline);
  /// Reads the samples of a later stage() while the device works. If reading fails, stage() reads again, and throws.
  void read_ahead(BatchSource& source, std::int64_t first, Device& device, Deadline deadline);
  /// This rank's losses on the device, f64 [m*b], each the sum over the tokens of its sample.
  TensorView losses() const { return values_.slice(0, 0, StepValues(shape_).losses); }
  /// This rank's request to stop on the device, f64 [1] (StepReductions::send_request()).
  TensorView request() const {
    const std::int64_t at = StepValues(shape_).request(0);
    return values_.slice(0, at, at + 1);
  }
  /// Both, as in StepValues.
  const TensorView& values() const { return values_; }

 private:
  struct All {
    TensorView tokens, targets, samples; // [m, ...]
    std::vector<MicrobatchViews> each;
  };
  struct HostSet {
    All views; // pinned memory
    const BatchSource* source = nullptr;
    std::int64_t first = 0; // with `source`: the samples that were read and not uploaded yet
    Event uploaded{};
  };
  All assign(Arena& arena, const BatchInputs& inputs) const;
  HostSet& set_for(const BatchSource& source, std::int64_t first);
  void read(HostSet& set, BatchSource& source, std::int64_t first, Device& device, Deadline deadline) const;

  BatchShape shape_;
  BatchInputs inputs_;
  HostSet host_[2];
  All device_;
  TensorView values_;
};

} // namespace triax::executor
