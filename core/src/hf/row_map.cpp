// SPDX-License-Identifier: Apache-2.0
#include "hf/row_map.hpp"

#include <algorithm>
#include <numeric>

#include "triax/error.hpp"

namespace triax::hf {

namespace {

[[noreturn]] void refuse_row(const HfParameter& row, const std::string& why) {
  throw Error(text("the row of parameter \"{}\" {}", row.parameter, why));
}

std::vector<std::int64_t> equal_shares(const HfParameter& row, std::int64_t rows) {
  const auto tensors = static_cast<std::int64_t>(row.tensors.size());
  if (rows % tensors != 0) refuse_row(row, text("divides {} rows among {} tensors", rows, tensors));
  return std::vector<std::int64_t>(row.tensors.size(), rows / tensors);
}

} // namespace

RowMap::RowMap(const HfParameter& row, std::int64_t rows) : groups_(row.groups) {
  if (row.tensors.empty()) refuse_row(row, "names no tensor");
  if (groups_ < 1) refuse_row(row, text("has {} groups", groups_));
  const bool parts_are_tensors = row.parts.empty() || row.parts.size() == row.tensors.size();
  const std::vector<std::int64_t> parts = !row.parts.empty() ? row.parts : equal_shares(row, rows);
  tensor_rows_ = parts_are_tensors ? parts : equal_shares(row, rows);
  std::int64_t begin = 0;
  for (const std::int64_t part : parts) {
    if (part < 0 || part % groups_ != 0)
      refuse_row(row, text("has a part of {} rows, which {} groups do not divide", part, groups_));
    if (part > rows - begin) refuse_row(row, text("has parts of more than the {} rows of the parameter", rows));
    parts_.push_back({begin, part / groups_, group_rows_});
    begin += part;
    group_rows_ += part / groups_;
  }
  if (begin != rows) refuse_row(row, text("has parts of {} rows in all, but the parameter has {}", begin, rows));
}

RowRun RowMap::from_parameter(std::int64_t parameter_row) const {
  const std::int64_t group = parameter_row / group_rows_, within = parameter_row % group_rows_;
  const auto after = std::ranges::find_if(parts_, [&](const Part& part) { return within < part.offset + part.share; });
  const Part& part = *after; // within < group_rows_
  std::int64_t joined = part.begin + group * part.share + (within - part.offset);
  RowRun out{0, 0, parameter_row, part.offset + part.share - within};
  while (joined >= tensor_rows_[out.tensor]) joined -= tensor_rows_[out.tensor++];
  out.row = joined;
  out.count = std::min(out.count, tensor_rows_[out.tensor] - joined);
  return out;
}

RowRun RowMap::from_tensor(std::size_t tensor, std::int64_t row) const {
  const auto before = tensor_rows_.begin() + static_cast<std::ptrdiff_t>(tensor);
  const std::int64_t joined = std::accumulate(tensor_rows_.begin(), before, row);
  const Part* part = &parts_.front();
  for (const Part& each : parts_)
    if (each.share > 0 && joined >= each.begin) part = &each;
  const std::int64_t group = (joined - part->begin) / part->share, within = (joined - part->begin) % part->share;
  return {tensor, row, group * group_rows_ + part->offset + within,
          std::min(part->share - within, tensor_rows_[tensor] - row)};
}

} // namespace triax::hf
