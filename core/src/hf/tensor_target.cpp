// SPDX-License-Identifier: Apache-2.0
#include "hf/tensor_target.hpp"

#include <algorithm>
#include <cstring>

#include "checkpoint/weights.hpp"

namespace triax::hf {

using checkpoint::ByteSink, checkpoint::SavedTensor, checkpoint::StopRequest, checkpoint::TensorReader;

RowReader::RowReader(TensorReader& from, const SavedTensor& tensor, std::int64_t columns)
    : from_(from), tensor_(tensor), row_bytes_(static_cast<std::size_t>(columns) * bytes_of(tensor.dtype)) {}

void RowReader::read(std::int64_t first, std::int64_t count, std::byte* out) {
  const int rank = tensor_.shape.rank();
  while (count > 0) {
    Shape begin = tensor_.shape, size = tensor_.shape;
    const int inner = std::max(rank - 2, 0); // the dimension of consecutive rows
    std::int64_t outer = first / tensor_.shape[inner];
    if (rank > 1) begin[rank - 1] = 0;
    begin[inner] = first % tensor_.shape[inner];
    const std::int64_t taken = std::min(count, tensor_.shape[inner] - begin[inner]);
    size[inner] = taken;
    for (int dim = inner - 1; dim >= 0; --dim) {
      begin[dim] = outer % tensor_.shape[dim];
      outer /= tensor_.shape[dim];
      size[dim] = 1;
    }
    from_.read(tensor_, begin, size, out);
    out += static_cast<std::size_t>(taken) * row_bytes_;
    first += taken;
    count -= taken;
  }
}

TensorTarget::TensorTarget(TensorReader& from, const SavedTensor& saved, const StoredParameter& parameter,
                           std::size_t tensor, DType dtype)
    : rows_(from, saved, parameter.columns()),
      parameter_(parameter),
      tensor_(tensor),
      width_(bytes_of(saved.dtype)),
      converter_(checkpoint::name_of(saved), saved.dtype, dtype) {}

template <class Body>
void TensorTarget::for_each_run(std::int64_t most, const Body& body) {
  for (std::int64_t row = 0; row < parameter_.map.rows_of(tensor_);) {
    RowRun run = parameter_.map.from_tensor(tensor_, row);
    run.count = std::min(run.count, most);
    body(run);
    row += run.count;
  }
}

void TensorTarget::pass(const ByteSink& sink, const StopRequest& stop) {
  const bool is_transposed = parameter_.row.transposed && parameter_.shape.rank() > 1;
  if (is_transposed) return pass_transposed(sink, stop);
  const std::int64_t most = std::max<std::int64_t>(checkpoint::kBlockElements / parameter_.columns(), 1);
  for_each_run(most, [&](const RowRun& run) {
    checkpoint::check_stop(stop);
    block_.resize(static_cast<std::size_t>(run.count) * rows_.row_bytes());
    rows_.read(run.parameter_row, run.count, block_.data());
    sink(converter_.convert(block_));
  });
}

/// Needs the whole tensor in memory: a row of the file has an element of each row here.
void TensorTarget::pass_transposed(const ByteSink& sink, const StopRequest& stop) {
  const auto columns = static_cast<std::size_t>(parameter_.columns()),
             rows = static_cast<std::size_t>(parameter_.map.rows_of(tensor_));
  std::vector<std::byte> whole(rows * rows_.row_bytes());
  for_each_run(parameter_.map.rows_of(tensor_), [&](const RowRun& run) {
    checkpoint::check_stop(stop);
    rows_.read(run.parameter_row, run.count, whole.data() + static_cast<std::size_t>(run.row) * rows_.row_bytes());
  });
  const std::size_t most = std::max<std::size_t>(checkpoint::kBlockElements / rows, 1);
  for (std::size_t first = 0; first < columns; first += most) {
    checkpoint::check_stop(stop);
    const std::size_t count = std::min(most, columns - first);
    block_.resize(count * rows * width_);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < count; ++column)
        std::memcpy(block_.data() + (column * rows + row) * width_,
                    whole.data() + (row * columns + first + column) * width_, width_);
    sink(converter_.convert(block_));
  }
}

} // namespace triax::hf
