// SPDX-License-Identifier: Apache-2.0
// Where the tokens of a microbatch come from: a dataset in training, whatever a test likes.
//
// Threads: called by the rank's main thread, before the first action of a step. Ownership: the caller's views, filled
// in the call. Blocking: may read files. Errors: throws Error.
#pragma once

#include <cstdint>
#include <span>

#include "triax/tensor.hpp"

namespace triax::executor {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Fills tokens and targets, host i32 [s, b], with the samples of these b running numbers.
  virtual void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens,
                          const TensorView& targets) = 0;
};

} // namespace triax::executor
