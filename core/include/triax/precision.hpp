// SPDX-License-Identifier: Apache-2.0
// Names of element types as train.precision writes them, for texts that a user reads beside that key.
//
// Threads: any. Ownership, blocking, errors: none.
#pragma once

#include <string_view>

#include "triax/tensor.hpp"

namespace triax {

/// "fp32"; that of name_of() for a type that train.precision does not have.
inline std::string_view precision_name(DType type) noexcept {
  switch (type) {
    case DType::f32:
      return "fp32";
    case DType::f64:
      return "fp64";
    case DType::f16:
      return "fp16";
    default:
      return name_of(type);
  }
}

} // namespace triax
