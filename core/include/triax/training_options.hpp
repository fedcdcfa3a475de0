// SPDX-License-Identifier: Apache-2.0
// Optional interface of models: names the options that act in training only, such as a dropout rate. A run may continue
// from a checkpoint with another value of these, but not of the others, which decide what the weights mean.
//
// Threads: the rank's main thread. Ownership: names are copied. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "triax/export.hpp"

namespace triax {

/// Optional interface of models: the options that act in training only.
class TRIAX_API TrainingOptions {
 public:
  static constexpr std::string_view kExtension = "triax.training_options";

  /// Names from the option table. With another value of these options, equal weights compute equal losses in an
  /// evaluation.
  virtual std::vector<std::string> training_options() const = 0;

 protected:
  ~TrainingOptions() = default;
};

} // namespace triax
