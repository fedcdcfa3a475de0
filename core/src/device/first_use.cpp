// SPDX-License-Identifier: Apache-2.0
#include "triax/first_use.hpp"

namespace triax {

FirstUse::~FirstUse() = default;

} // namespace triax
