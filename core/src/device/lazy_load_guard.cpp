// SPDX-License-Identifier: Apache-2.0
#include "triax/lazy_load_guard.hpp"

namespace triax {

LazyLoadGuard::~LazyLoadGuard() = default;

} // namespace triax
