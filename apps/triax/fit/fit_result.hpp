// SPDX-License-Identifier: Apache-2.0
// The result of `triax fit`, and its two output formats.
#pragma once

#include <string>
#include <vector>

#include "common/memory_limit.hpp"
#include "config/load.hpp"
#include "train/memory_search.hpp"

namespace triax::app {

struct FitResult {
  std::string file;
  MemoryLimit limit;
  std::vector<config::Diagnostic> refusals; // why the run is refused, or that nothing fits
  train::MemorySearch search{};
  std::vector<config::Diagnostic> left_out{}; // MemorySearch::left_out
  std::string split{};                        // that parallel.split = "auto" stands for, as TOML; empty: another split

  bool fits(const train::MemoryPlan& plan) const { return plan.bytes <= limit.bytes; }
};

struct FitChange {
  std::string table, key, value; // "memory", "recompute", "\"full\""
};
/// Keys to change from the run to the best setting; requires a best setting. None if the run fits as it is written.
std::vector<FitChange> changes_of(const FitResult& result);

/// "parallel.sequence = true, ..."
std::string to_text(const train::MemorySettings& settings);
std::string to_text(const FitResult& result);
std::string to_json(const FitResult& result);

} // namespace triax::app
