// SPDX-License-Identifier: Apache-2.0
// A part of the memory of a rank.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "executor/memory.hpp"
#include "triax/device.hpp"

namespace triax::train {

struct MemoryRow {
  std::string what; // "weights", "gradients", "optimizer state", "activations", "scratch"...
  std::size_t bytes = 0;
  bool is_on_host = false; // and not in the memory of the rank's device
};

/// The heading of its column: "checkpoint staging (host)".
inline std::string heading_of(const MemoryRow& row) {
  return row.is_on_host ? row.what + " (host)" : row.what;
}

/// The parts of a state. Where the device is not the host, pinned memory is not memory of the device.
std::vector<MemoryRow> memory_rows(std::span<const executor::RankMemory::Row> rows, DeviceKind device);

/// All parts of a state as one, and where the device is not the host, a second one of its pinned memory.
std::vector<MemoryRow> memory_rows_of(const std::string& what, std::span<const executor::RankMemory::Row> rows,
                                      DeviceKind device);

} // namespace triax::train
