// SPDX-License-Identifier: Apache-2.0
// Messages about logits that are not finite: generated texts and scores of choices stop at the first.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cmath>
#include <cstdint>

#include "triax/tensor.hpp"

namespace triax::train {

/// Small numbers, which ranks can agree on.
enum class NonfiniteKind : std::int32_t { minus_infinity, infinity, nan };

inline NonfiniteKind nonfinite_kind(double logit) {
  if (std::isnan(logit)) return NonfiniteKind::nan;
  return logit > 0 ? NonfiniteKind::infinity : NonfiniteKind::minus_infinity;
}

inline const char* nonfinite_text(NonfiniteKind kind) {
  constexpr const char* kNames[] = {"-infinity", "infinity", "not a number"};
  return kNames[static_cast<std::int32_t>(kind)];
}

/// The next step.
inline const char* nonfinite_hint(DType compute) {
  return compute == DType::f16 ? "the weights are not finite, or values are too large for train.precision = \"fp16\": "
                                 "use \"bf16\" or \"fp32\", or other weights"
                               : "the weights are not finite, or too large: use those of another checkpoint";
}

} // namespace triax::train
