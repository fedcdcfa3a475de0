// SPDX-License-Identifier: Apache-2.0
// Losses and gradients of whole parameters, from the ranks of a tensor group.
//
// Threads: add() may be called by all ranks at once. Ownership: values. Blocking: add() waits for other ranks' add().
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model_run.hpp"

namespace triax::conformance {

class MergedGradients {
 public:
  /// Adds the results of a rank. Differences between ranks and gradients of padding are failures of the report.
  void add(const ModelRun& run, Report& report);

  /// By name; complete after the last rank.
  std::map<std::string, std::vector<double>> values;

 private:
  void add_gradient(const ModelRun& run, std::size_t at, std::size_t parameter, Report& report);
  void compare_shared(const ModelRun& run, Report& report);

  std::mutex mutex_;              // guards the members
  std::optional<Tensors> shared_; // of the first rank: what all ranks have in equal bits
};

} // namespace triax::conformance
