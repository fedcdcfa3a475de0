// The data of a step: tokens, targets and running numbers of every microbatch, and the losses that come out.
//
// Threads: the rank's main thread. Ownership: views into RankMemory. Blocking: stage() waits until the step before has
// read what it is about to overwrite; losses() is for after the download has finished.
//
// Global microbatch k*d + r is data rank r's k-th; sample numbers run on from step to step.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/batch_source.hpp"
#include "executor/memory.hpp"

namespace triax::executor {

struct BatchShape {
  std::int64_t microbatches = 1, micro = 1, sequence = 1; // of this rank
  int data_size = 1, data_index = 0;
  std::int64_t global() const { return microbatches * micro * data_size; } // samples of a step
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
  void place(RankMemory& memory);
  const MicrobatchViews& of(int microbatch) const { return device_[static_cast<std::size_t>(microbatch)]; }

  /// Fills all microbatches; `first` is the running number of the global batch's first sample.
  void stage(BatchSource& source, std::int64_t first, Device& device, Stream& stream, Deadline deadline);
  void download_losses(Device& device, Stream& stream);
  /// This rank's losses, each summed over its sample's tokens, microbatch by microbatch.
  std::span<const double> losses() const;
  std::int64_t sample(std::size_t loss) const { return samples_.as<std::int64_t>()[loss]; }

 private:
  BatchShape shape_;
  TensorView tokens_, targets_, samples_, losses_; // pinned host memory, [m, ...]
  TensorView on_device_tokens_, on_device_targets_, on_device_samples_, on_device_losses_;
  std::vector<MicrobatchViews> host_, device_;
  Event uploaded_;
};

} // namespace triax::executor
