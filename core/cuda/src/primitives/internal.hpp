// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the primitives.
//
// Threads, ownership, blocking, errors: as triax/cuda/primitives.hpp.
#pragma once

#include "triax/cuda/primitives.hpp"

namespace triax::cuda {

/// Scratch that an operation takes from the front of its call's.
std::size_t scratch_of(const BiasBwd& args);
std::size_t scratch_of(const NormBwdWeight& args);
std::size_t scratch_of(const SumSquares& args);

/// d *= beta, for a product with K = 0. d may be strided; with beta = 0 it is not read.
void launch_beta(const TensorView& d, float beta, const OpContext& context);

} // namespace triax::cuda
