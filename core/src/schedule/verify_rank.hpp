// SPDX-License-Identifier: Apache-2.0
// The checks of the verifier that need the program of one rank only.
//
// Threads: pure. Errors: violations are returned, not thrown.
#pragma once

#include <vector>

#include "schedule/verify.hpp"

namespace triax::schedule {

/// Checks completeness, repetition, needs, ascending gradients, slots, waits and the cap of microbatch chunks in
/// flight. Empty: verified.
std::vector<Violation> verify_rank(const Program& program, const Purpose& purpose);

} // namespace triax::schedule
