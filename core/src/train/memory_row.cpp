// SPDX-License-Identifier: Apache-2.0
// Divides the memory of a state between device and host.
#include "train/memory_row.hpp"

#include <algorithm>

namespace triax::train {

namespace {

bool is_on_host(const executor::RankMemory::Row& row, DeviceKind device) {
  return row.kind == MemoryKind::pinned && device != DeviceKind::host;
}

void add_row(std::vector<MemoryRow>& to, const MemoryRow& row) {
  const auto same = std::ranges::find_if(
      to, [&row](const MemoryRow& listed) { return listed.what == row.what && listed.is_on_host == row.is_on_host; });
  if (same == to.end()) {
    to.push_back(row);
  } else {
    same->bytes += row.bytes;
  }
}

} // namespace

std::vector<MemoryRow> memory_rows(std::span<const executor::RankMemory::Row> rows, DeviceKind device) {
  std::vector<MemoryRow> out;
  for (const executor::RankMemory::Row& row : rows) add_row(out, {row.what, row.bytes, is_on_host(row, device)});
  return out;
}

std::vector<MemoryRow> memory_rows_of(const std::string& what, std::span<const executor::RankMemory::Row> rows,
                                      DeviceKind device) {
  std::vector<MemoryRow> out;
  for (const executor::RankMemory::Row& row : rows) add_row(out, {what, row.bytes, is_on_host(row, device)});
  return out;
}

} // namespace triax::train
