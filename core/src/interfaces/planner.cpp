// SPDX-License-Identifier: Apache-2.0
#include "triax/planner.hpp"

namespace triax {

PlanEvaluator::~PlanEvaluator() = default;
Planner::~Planner() = default;

} // namespace triax
