// SPDX-License-Identifier: Apache-2.0
// Scratch of the operations that this set implements.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>

#include "triax/kernels.hpp"

namespace triax::kernels_fused {

/// Empty for operations of the primitives or the core's defaults.
std::optional<std::size_t> own_scratch(const OpCall& call);

} // namespace triax::kernels_fused
