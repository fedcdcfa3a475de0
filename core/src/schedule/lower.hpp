// From a schedule's rows to one program per pipeline rank: transfers between stages of different ranks, slots, waits,
// and the actions that end a step.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error if the rows have not passed verify().
//
// One global order of transfers: the rows are timed in unit passes (F and each half of a backward take one), and all
// transfers are sorted by when their producers end. A rank posts its own in that order, each before its first compute
// action that ends later. Every wait then leads to something earlier in this time, so no backend's ordering makes a
// deadlock; verify() proves it again from the programs alone.
//
// Where boundaries are scattered, each pass that reads what came from another rank has a gather right before it. It
// waits for nothing that the pass does not wait for, and all ranks of a tensor group run the same program, so that they
// meet in it in one order; a circle through several of them would be one through each.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.hpp"

namespace triax::schedule {

/// Of each kind in a step, over all ranks: more is a slip, and would take minutes to prove.
inline constexpr std::int64_t kMostActions = 1 << 18;
/// Of a pipeline: every program carries the whole stage map.
inline constexpr int kMostRanks = 4096;

/// One step of training: REDUCE_GRAD right after a stage's last backward; REDUCE_TIED, NORM and OPT_STEP at the end.
std::vector<Program> lower(const Schedule& schedule, const PipelineShape& shape,
                           Boundaries boundaries = Boundaries::whole);

/// The forwards alone, in the order of the rows: evaluation.
std::vector<Program> lower_forward_only(const Schedule& schedule, const PipelineShape& shape,
                                        Boundaries boundaries = Boundaries::whole);

} // namespace triax::schedule
