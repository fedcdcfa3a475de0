// SPDX-License-Identifier: Apache-2.0
#include "hf/parameter_source.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "checkpoint/weights.hpp"

namespace triax::hf {

namespace {

static_assert(kMaster == DType::f32);

/// NaN and infinity have all bits of the exponent.
std::int64_t count_nonfinite(std::span<const std::byte> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::int64_t out = 0;
  for (std::size_t at = 0; at < values.size(); at += sizeof kExponent) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, values.data() + at, sizeof bits);
    out += (bits & kExponent) == kExponent ? 1 : 0;
  }
  return out;
}

} // namespace

ParameterSource::ParameterSource(const ModelTensors& files, const StoredParameter& parameter,
                                 const std::vector<const ModelTensors::Tensor*>& tensors)
    : files_(files), parameter_(parameter), tensors_(tensors), whole_(tensors.size()), nonfinite_(tensors.size()) {
  for (const ModelTensors::Tensor* tensor : tensors)
    converters_.emplace_back(tensor->entry.name, tensor->entry.dtype, kMaster);
}

void ParameterSource::pass(const checkpoint::ByteSink& sink, const checkpoint::StopRequest& stop) {
  const std::int64_t rows = parameter_.shape.elements() / parameter_.columns();
  const std::int64_t most = std::max<std::int64_t>(checkpoint::kBlockElements / parameter_.columns(), 1);
  for (std::int64_t row = 0; row < rows;) {
    checkpoint::check_stop(stop);
    RowRun run = parameter_.map.from_parameter(row);
    run.count = std::min(run.count, most);
    if (parameter_.row.transposed && parameter_.shape.rank() > 1) {
      gather(run);
    } else {
      read(run);
    }
    const std::span<const std::byte> values = converters_[run.tensor].convert(block_);
    nonfinite_[run.tensor] += count_nonfinite(values);
    sink(values);
    row += run.count;
  }
}

void ParameterSource::read(const RowRun& run) {
  const std::size_t row_bytes = static_cast<std::size_t>(parameter_.columns()) * width(run);
  block_.resize(static_cast<std::size_t>(run.count) * row_bytes);
  files_.read(*tensors_[run.tensor], static_cast<std::uint64_t>(run.row) * row_bytes, block_);
}

/// Rows are columns of the file's tensor, which is read as a whole.
void ParameterSource::gather(const RowRun& run) {
  const std::size_t bytes = width(run);
  std::vector<std::byte>& whole = whole_[run.tensor];
  if (whole.empty()) {
    whole.resize(tensors_[run.tensor]->entry.bytes());
    files_.read(*tensors_[run.tensor], 0, whole);
  }
  const auto columns = static_cast<std::size_t>(parameter_.columns()), count = static_cast<std::size_t>(run.count),
             stride = static_cast<std::size_t>(parameter_.map.rows_of(run.tensor)),
             first = static_cast<std::size_t>(run.row);
  block_.resize(count * columns * bytes);
  for (std::size_t column = 0; column < columns; ++column)
    for (std::size_t row = 0; row < count; ++row)
      std::memcpy(block_.data() + (row * columns + column) * bytes,
                  whole.data() + (column * stride + first + row) * bytes, bytes);
}

} // namespace triax::hf
