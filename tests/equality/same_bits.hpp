// SPDX-License-Identifier: Apache-2.0
// Expectations on the bits of runs: with tensor size, data size and microbatch size fixed, pipeline size, chunks and
// schedule do not change a bit (docs/adr/0001).
//
// Threads: the test's. Blocking: trains, once for each set of runs that must be equal. Errors: those of train().
#pragma once

#include <vector>

#include "equality/world.hpp"

namespace triax::equality {

using Ranks = std::vector<KeptRank>;

/// The same samples and layers on one pipeline rank.
const Ranks& expected(Case run, const Training& training);

/// `one` may hold a subset of the parameters of `all`.
void expect_same(const KeptRank& one, const KeptRank& all);

/// Trains `run`, and compares every rank with its counterpart in `same_as`; by default in expected().
void expect_as_expected(const Case& run, const Training& training, const Ranks* same_as = nullptr);

} // namespace triax::equality
