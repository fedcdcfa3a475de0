// SPDX-License-Identifier: Apache-2.0
// A rank as generate_text() needs it.
//
// Threads: the rank's main thread. Blocking: agree() waits for all ranks. Errors: Error of the wait.
#pragma once

#include <cstdint>
#include <span>

#include "executor/generator.hpp"

namespace triax::train {

class TextRank {
 public:
  virtual ~TextRank() = default;

  virtual executor::Generator& generator() = 0;
  virtual const executor::GenerateState& state() const = 0;
  /// Each value becomes the largest of all ranks. All ranks must call it at the same points, with as many values: at
  /// most kMaxAgreed.
  virtual void agree(std::span<std::int32_t> values) = 0;
  static constexpr std::int64_t kMaxAgreed = 4096;
  /// The tokens of each sequence, for position().
  virtual void set_position(std::int64_t tokens) = 0;
};

} // namespace triax::train
