// SPDX-License-Identifier: Apache-2.0
// The elements of one tensor of a model's folder, from the parameters of a checkpoint. ParameterSource is the reverse.
//
// Threads: one per object. Ownership: borrows the reader, the saved tensor and the parameter. Blocking: reads. Memory:
// a block, and the whole tensor if it is transposed. Errors: Error with the file and the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/block_converter.hpp"
#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/stop_request.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "hf/mapped_model.hpp"

namespace triax::hf {

/// Reads rows of a whole tensor: all its dimensions but the last, joined.
class RowReader {
 public:
  RowReader(checkpoint::TensorReader& from, const checkpoint::SavedTensor& tensor, std::int64_t columns);

  std::size_t row_bytes() const { return row_bytes_; }
  void read(std::int64_t first, std::int64_t count, std::byte* out);

 private:
  checkpoint::TensorReader& from_;
  const checkpoint::SavedTensor& tensor_;
  const std::size_t row_bytes_;
};

class TensorTarget {
 public:
  /// `tensor`: its number in the parameter's row; `dtype`: that of its elements in the folder.
  TensorTarget(checkpoint::TensorReader& from, const checkpoint::SavedTensor& saved, const StoredParameter& parameter,
               std::size_t tensor, DType dtype);

  /// Passes all elements on, in the order of the file.
  void pass(const checkpoint::ByteSink& sink, const checkpoint::StopRequest& stop);

 private:
  template <class Body>
  void for_each_run(std::int64_t most, const Body& body);
  void pass_transposed(const checkpoint::ByteSink& sink, const checkpoint::StopRequest& stop);

  RowReader rows_;
  const StoredParameter& parameter_;
  const std::size_t tensor_, width_;
  checkpoint::BlockConverter converter_;
  std::vector<std::byte> block_;
};

} // namespace triax::hf
