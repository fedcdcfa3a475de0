// SPDX-License-Identifier: Apache-2.0
// run_ranks() for ranks that are processes.
#pragma once

#include <functional>

#include "triax/conformance/rank.hpp"

namespace triax::conformance {

void run_rank_processes(const RankSetup& setup, const Layout& layout, Report& report,
                        const std::function<void(Rank&)>& body);

} // namespace triax::conformance
