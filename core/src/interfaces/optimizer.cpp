// SPDX-License-Identifier: Apache-2.0
// Optimizer interface, the part in libtriax_core: the destructor (one vtable).
#include "triax/optimizer.hpp"

namespace triax {

Optimizer::~Optimizer() = default;

} // namespace triax
