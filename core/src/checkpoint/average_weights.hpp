// SPDX-License-Identifier: Apache-2.0
// Writes the mean of the weights of several checkpoints as a checkpoint that has weights only.
//
// Threads: one at a time per folder. Blocking: reads the checkpoints twice (checksums, then values), writes, and waits
// for the disk. Memory: a few blocks of values, and a buffer per checkpoint. Errors: Error with the file; then there is
// no folder of that name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/tensor_reader.hpp"

namespace triax::checkpoint {

struct AveragedWeights {
  std::size_t tensors = 0;
  std::int64_t parameters = 0, step = 0; // the newest step, whose configuration and state of training the result has
  std::uint64_t bytes = 0;
};

/// Sums are in f64 and rounded once at the end: the mean of equal f32 values is this value, and the order of the
/// checkpoints hardly matters.
class WeightsAverage {
 public:
  /// Reads the manifests. Refuses checkpoints of which one does not have a parameter, or has it in another shape or
  /// type, and an output that exists or that a run would take for its own checkpoint.
  WeightsAverage(std::span<const std::filesystem::path> checkpoints, const std::filesystem::path& output);
  AveragedWeights write(const StopRequest& stop = {});

 private:
  const std::filesystem::path output_;
  std::vector<std::unique_ptr<TensorReader>> readers_; // at least one
};

} // namespace triax::checkpoint
