// SPDX-License-Identifier: Apache-2.0
// Scratch of the operations that this set implements, in bytes: functions of the shapes alone. Each is defined beside
// its kernels.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>

#include "triax/kernels.hpp"

namespace triax::kernels_fused {

std::size_t scratch_of(const BiasBwd& args);
std::size_t scratch_of(const NormBwdWeight& args);
std::size_t scratch_of(const EmbedBwd& args);
std::size_t scratch_of(const SumSquares& args);

/// Empty for operations of the primitives or the core's defaults.
std::optional<std::size_t> own_scratch(const OpCall& call);

} // namespace triax::kernels_fused
