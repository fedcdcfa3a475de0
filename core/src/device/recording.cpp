// SPDX-License-Identifier: Apache-2.0
#include "triax/recording.hpp"

namespace triax {

Recording::~Recording() = default;

} // namespace triax
