// Proof that a schedule, and then the program made from it, does what a step is.
//
// Threads: pure functions. Ownership: values. Blocking: never.
// A refusal names rank, position in the row (from 0), action and reason. All of a kind that can be told apart are
// listed; checks that only make sense on rows that passed the earlier ones are left out until those pass.
#pragma once

#include <vector>

#include "schedule/program.hpp"
#include "triax/error.hpp"

namespace triax::schedule {

/// Over all rows: known stages and microbatches, each stage on one rank and its actions in that rank's row, nothing
/// twice, nothing missing, F before B or I and I before W, I's and W's of a stage in ascending order of microbatches,
/// and an order in which all ranks get to their ends. Empty: proved.
std::vector<Support> verify(const Schedule& schedule, const PipelineShape& shape);

/// Over a rank's program: what each action needs comes before it, a slot is free when it is filled and full when it is
/// read, and all slots are free at the end. Empty: proved.
std::vector<Support> verify(const Program& program);

} // namespace triax::schedule
