// SPDX-License-Identifier: Apache-2.0
// How two checkpoints differ: configuration, state of training, and tensors, whatever ranks wrote them.
//
// Threads: as TensorReader. Blocking: reads both checkpoints. Memory: some blocks of values, whatever the size of the
// tensors. Errors: Error with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/tensor_reader.hpp"

namespace triax::checkpoint {

struct ValueDifference {
  std::string key;
  std::optional<std::string> first, second; // empty: not there
};

/// A tensor that differs. Of types that differ, the values are compared; else the bits.
struct TensorDifference {
  std::string parameter, state;
  Shape first_shape, second_shape; // values are only compared if they are equal
  DType first_type = DType::f32, second_type = DType::f32;
  std::int64_t differing = 0;  // elements
  std::int64_t not_finite = 0; // elements that differ, with a value that is not finite: not in the largest differences
  double max_absolute = 0;     // |a - b|
  double max_relative = 0;     // |a - b| / max(|a|, |b|)
  bool is_same_shape() const { return first_shape == second_shape; }
};

struct CheckpointDifference {
  std::vector<ValueDifference> config;              // keys of the run; they do not decide whether checkpoints are equal
  std::vector<ValueDifference> training;            // step, samples, loss scale and so on
  std::vector<std::string> only_first, only_second; // tensors: "block 0/w (m)"
  std::vector<TensorDifference> tensors;            // by name, then state
  std::size_t compared = 0;                         // tensors that are in both
  bool is_equal() const { return training.empty() && only_first.empty() && only_second.empty() && tensors.empty(); }
};

/// `weights_only`: leaves out the optimizer's state and the state of training.
CheckpointDifference compare(TensorReader& first, TensorReader& second, bool weights_only);

} // namespace triax::checkpoint
