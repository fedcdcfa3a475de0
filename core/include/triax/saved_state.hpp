// SPDX-License-Identifier: Apache-2.0
// Optional interface of models, kernel sets and optimizers: state that a run needs to continue, besides the tensors
// that the engine saves (master weights and OptimizerTraits::state).
//
// Threads: the rank's main thread. Ownership: texts are copied. Blocking: never. Errors: Error.
#pragma once

#include <string>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Optional interface of models, kernel sets and optimizers: state besides tensors, for checkpoints.
class TRIAX_API SavedState {
 public:
  static constexpr std::string_view kExtension = "triax.saved_state";

  /// The state after the last step: UTF-8, at most 64 KiB. It must be the same on all ranks, because the run may
  /// continue with other ranks: rank 0's text is saved. Also called once at the start, before load(), where an error
  /// ends the start; later, an error makes one checkpoint fail.
  virtual std::string save() const = 0;
  /// Restores the text that save() returned at the step after which the run continues. Called on all ranks before a
  /// step: the first one (of an optimizer, after prepare()), or a later one if the run goes back (train.nonfinite =
  /// "rewind"). Throws Error for a text that it cannot read.
  virtual void load(std::string_view state) = 0;

 protected:
  ~SavedState() = default;
};

} // namespace triax
