// SPDX-License-Identifier: Apache-2.0
// Comparison of a case, bit for bit, with the same samples and layers on one pipeline rank.
//
// Threads: those of train(). Blocking: until the ranks have finished. Differences are failures of the test.
#pragma once

#include "equality/harness.hpp"

namespace triax::equality {

/// With clipping and weight decay, so that their inputs must be equal too.
inline const Training kTraining{.clip_grad = 0.1};

/// The same samples and layers on one pipeline rank. Trained once, then kept.
const Ranks& expected(Case run, const Training& training);

/// `one` may hold a subset of the parameters of `all`.
void expect_same(const KeptRank& one, const KeptRank& all);

/// The case has the results of expected(), or of `same_as`, on every rank, and all parameters.
void expect_as_expected(const Case& run, const Training& training = kTraining, const Ranks* same_as = nullptr);

} // namespace triax::equality
