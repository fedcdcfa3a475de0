// SPDX-License-Identifier: Apache-2.0
// Scratch of the operations that this set does itself.
//
// Threads: pure functions. Ownership, blocking, errors: none.
#pragma once

#include <cstddef>
#include <optional>

#include "triax/kernels.hpp"

namespace triax::fused {

/// Empty for what the primitives or the core's defaults do.
std::optional<std::size_t> own_scratch(const OpCall& call);

} // namespace triax::fused
