// SPDX-License-Identifier: Apache-2.0
#include "triax/extension.hpp"

namespace triax {

void* Extensible::extension(std::string_view) noexcept {
  return nullptr;
}

} // namespace triax
