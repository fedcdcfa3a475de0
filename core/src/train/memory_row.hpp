// SPDX-License-Identifier: Apache-2.0
// A part of the memory of a rank.
#pragma once

#include <cstddef>
#include <string>

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

} // namespace triax::train
