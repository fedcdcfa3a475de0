// SPDX-License-Identifier: Apache-2.0
// The balanced split of equal blocks, as of a transformer, without dynamic programs: a search asks for thousands.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/balanced_split.hpp"

namespace triax::cost {

/// Whether all blocks have the same load.
bool has_equal_blocks(const SplitProblem& problem);

/// The same split as balanced_split(). The blocks must be equal.
std::vector<std::int64_t> equal_block_split(const SplitProblem& problem);

} // namespace triax::cost
