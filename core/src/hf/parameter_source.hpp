// SPDX-License-Identifier: Apache-2.0
// The elements of one parameter, from the tensors of a model's folder.
//
// Threads: one per object. Ownership: borrows the files, the parameter and the tensors. Blocking: reads. Memory: a
// block, and each tensor that is transposed. Errors: Error with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/block_converter.hpp"
#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/stop_request.hpp"
#include "hf/mapped_model.hpp"
#include "hf/model_tensors.hpp"

namespace triax::hf {

/// The type of the weights of an imported model.
inline constexpr DType kMaster = DType::f32;

class ParameterSource {
 public:
  /// `tensors`: those of the parameter's row.
  ParameterSource(const ModelTensors& files, const StoredParameter& parameter,
                  const std::vector<const ModelTensors::Tensor*>& tensors);

  /// Passes all elements on, in the order of the engine.
  void pass(const checkpoint::ByteSink& sink, const checkpoint::StopRequest& stop);
  /// Values that pass() has found to be NaN or infinite, for each tensor of the row.
  const std::vector<std::int64_t>& nonfinite() const { return nonfinite_; }

 private:
  std::size_t width(const RowRun& run) const { return bytes_of(tensors_[run.tensor]->entry.dtype); }
  void read(const RowRun& run);
  void gather(const RowRun& run);

  const ModelTensors& files_;
  const StoredParameter& parameter_;
  const std::vector<const ModelTensors::Tensor*>& tensors_;
  std::vector<checkpoint::BlockConverter> converters_;
  std::vector<std::vector<std::byte>> whole_; // tensors that are transposed
  std::vector<std::byte> block_;
  std::vector<std::int64_t> nonfinite_;
};

} // namespace triax::hf
