// SPDX-License-Identifier: Apache-2.0
// Lowers a schedule's rows to one program per pipeline rank: adds transfers between stages of different ranks, slots,
// waits and the actions at the end of a step.
//
// Threads: pure functions. Errors: Error if the rows have not passed verify().
//
// Transfers have one global order: the rows are timed in unit passes (F and each half of a backward take one), and all
// transfers are sorted by the end time of their producers. A rank posts its transfers in this order, each before its
// first compute action that ends later. So every wait is for something with an earlier time, and no order of a backend
// can cause a deadlock. verify() checks this again, from the programs alone.
//
// R comes after the transfers that precede its B or I, so the receive of the gradient is posted before it, and the
// gather of a scattered gradient comes after it. It waits for nothing that an earlier action has not waited for but the
// weights that its B or I reads, so it can cause no deadlock, either.
//
// With scattered boundaries, a gather is directly before each pass that reads a tensor from another rank. It waits for
// nothing that the pass does not wait for. All ranks of a tensor group run the same program, so they post the gathers
// in the same order: a cycle through several of these ranks would be a cycle on each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.hpp"

namespace triax::schedule {

/// Limit per kind and step, over all ranks: larger numbers are mistakes, and would take minutes to verify.
inline constexpr std::int64_t kMaxActions = 1 << 18;
/// Limit of pipeline ranks: every program has a copy of the stage map.
inline constexpr int kMaxRanks = 4096;

/// One training step: REDUCE_GRAD directly after a stage's last backward; REDUCE_TIED, NORM and the stages' OPT_STEP at
/// the end, each with its GATHER_PARAM if the ranks shard the optimizer's state. With Sharding::parameters, UNSHARD
/// precedes the use of a stage's weights by `prefetch` uses (see kDefaultPrefetch). RESHARD follows the use, unless one
/// of the next `prefetch` + 1 uses has the same stage. `recomputes`: by stage, whether R precedes each B and I; empty:
/// of none. No pass is between R and its B or I, so the rank keeps what R computes once, as without R, and all slots
/// are the same.
std::vector<Program> lower(const Schedule& schedule, const PipelineShape& shape,
                           Boundaries boundaries = Boundaries::whole, Sharding sharding = Sharding::none,
                           int prefetch = kDefaultPrefetch, const std::vector<bool>& recomputes = {});

/// Evaluation: only the forwards, in the order of the rows, and UNSHARD and RESHARD as above.
std::vector<Program> lower_forward_only(const Schedule& schedule, const PipelineShape& shape,
                                        Boundaries boundaries = Boundaries::whole, Sharding sharding = Sharding::none,
                                        int prefetch = kDefaultPrefetch);

/// The rows of a schedule, or their forwards alone, with the end of each pass: what lowering reads with any boundaries
/// and sharding. A search lowers only some of its ranks.
struct TimedRows {
  TimedRows(const Schedule& schedule, const PipelineShape& of, bool has_only_forwards);

  PipelineShape shape;
  bool forward_only;
  StageMap stage_map;
  std::vector<std::vector<Action>> rows;       // by rank
  std::vector<std::vector<std::int64_t>> ends; // of their passes: see end_times()
};

/// The program of a rank that lower() returns without `recomputes`, or lower_forward_only().
Program lower_rank(const TimedRows& rows, int rank, Boundaries boundaries, Sharding sharding, int prefetch);

/// The pools of this program, in less time.
RankSlots count_slots(const TimedRows& rows, int rank, Boundaries boundaries, Sharding sharding, int prefetch);

} // namespace triax::schedule
