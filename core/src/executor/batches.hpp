// SPDX-License-Identifier: Apache-2.0
// The data of a step: tokens, targets and sample numbers of every microbatch, and the resulting losses.
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: stage() waits until the previous step
// has read the buffers that it overwrites.
//
// Global microbatch k*d + r is the k-th of data rank r. Sample numbers continue from step to step.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/batch_source.hpp"
#include "executor/memory.hpp"

namespace triax::executor {

struct BatchShape {
  std::int64_t microbatches = 1, micro = 1, sequence = 1; // of this rank
  int data_size = 1, data_index = 0;
  std::int64_t global() const { return microbatches * micro * data_size; } // samples per step
  std::int64_t tokens() const { return global() * sequence; }
};

/// One microbatch in device memory.
struct MicrobatchViews {
  TensorView tokens, targets; // i32 [s, b]
  TensorView samples;         // i64 [b]
  TensorView loss;            // f64 [b], written by the last layer
};

class Batches {
 public:
  explicit Batches(const BatchShape& shape) : shape_(shape) {}
  const BatchShape& shape() const { return shape_; }
  void assign_memory(RankMemory& memory);
  const MicrobatchViews& of(int microbatch) const { return device_.each[static_cast<std::size_t>(microbatch)]; }

  /// Fills all microbatches; `first` is the number of the global batch's first sample.
  void stage(BatchSource& source, std::int64_t first, Device& device, Stream& stream, Deadline deadline);
  /// This rank's losses on the device, f64 [m*b], each the sum over the tokens of its sample.
  const TensorView& losses() const { return losses_; }

 private:
  struct All {
    TensorView tokens, targets, samples; // [m, ...]
    std::vector<MicrobatchViews> each;
  };
  static All assign(Arena& arena, const BatchShape& shape);

  BatchShape shape_;
  All host_, device_; // host_ is pinned memory
  TensorView losses_;
  Event uploaded_;
};

} // namespace triax::executor
