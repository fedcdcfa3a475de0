// SPDX-License-Identifier: Apache-2.0
// Source of the tokens of a microbatch: a dataset in training, or a test's own source.
//
// Threads: called by the rank's main thread, for the next step or the one that starts, and only if the rank has a layer
// that reads tokens or targets. Ownership: fills the caller's views. Blocking: may read files.
#pragma once

#include <cstdint>
#include <span>

#include "triax/tensor.hpp"

namespace triax::executor {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Fills tokens and targets (host, i32 [s, b]) with the b samples of these numbers.
  virtual void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens,
                          const TensorView& targets) = 0;
};

} // namespace triax::executor
