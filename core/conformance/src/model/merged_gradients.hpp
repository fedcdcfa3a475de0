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
  /// Adds the results of a rank. Ranks that describe a parameter differently are an Error.
  void add(const ModelRun& run);
  /// Differences so far: values that must be bit-equal across ranks; gradients of padding that are not 0.
  /// @{
  const std::vector<std::string>& shared_differences() const { return shared_differences_; }
  const std::vector<std::string>& padding_differences() const { return padding_differences_; }
  /// @}

  /// By name; complete after the last rank.
  std::map<std::string, std::vector<double>> values;

 private:
  void add_gradient(const ModelRun& run, std::size_t at, std::size_t parameter);
  void compare_shared(const ModelRun& run);

  std::mutex mutex_;              // guards the members
  std::optional<Tensors> shared_; // the first rank's tensors, which all ranks must have in equal bits
  std::vector<std::string> shared_differences_, padding_differences_;
};

} // namespace triax::conformance
