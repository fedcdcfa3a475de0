// SPDX-License-Identifier: Apache-2.0
// Where each row of a parameter is in the tensors that store it, by a row of HfMapping's table.
//
// Threads: values. Errors: Error for a table row that contradicts the parameter's shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "triax/hf_mapping.hpp"

namespace triax::hf {

/// Rows that follow one another on both sides.
struct RowRun {
  std::size_t tensor = 0;         // index in HfParameter::tensors
  std::int64_t row = 0;           // in that tensor, after a transposition
  std::int64_t parameter_row = 0; // in the parameter
  std::int64_t count = 0;
};

class RowMap {
 public:
  /// `rows`: of the parameter.
  RowMap(const HfParameter& row, std::int64_t rows);

  /// The longest run that begins with this row of the parameter.
  RowRun from_parameter(std::int64_t parameter_row) const;
  /// The longest run that begins with this row of a tensor.
  RowRun from_tensor(std::size_t tensor, std::int64_t row) const;
  std::int64_t rows_of(std::size_t tensor) const { return tensor_rows_[tensor]; }
  std::size_t tensors() const { return tensor_rows_.size(); }

 private:
  struct Part {
    std::int64_t begin = 0;  // among the joined rows of the tensors
    std::int64_t share = 0;  // rows of a group
    std::int64_t offset = 0; // where the share begins in a group
  };

  std::vector<std::int64_t> tensor_rows_;
  std::vector<Part> parts_;
  std::int64_t group_rows_ = 0, groups_ = 1;
};

} // namespace triax::hf
