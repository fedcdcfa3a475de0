// SPDX-License-Identifier: Apache-2.0
// Optimizer interface, the part in libtriax_core: the destructor (one vtable) and defaults.
#include "triax/optimizer.hpp"

namespace triax {

Optimizer::~Optimizer() = default;

std::size_t Optimizer::scratch_bytes(std::span<const ParameterShard>) const {
  return 0;
}

} // namespace triax
