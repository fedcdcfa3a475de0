// SPDX-License-Identifier: Apache-2.0
// Simulator: predicts the time of a step, as longest paths in the dependency graph (graph.hpp) with given pass times.
//
// Threads: pure functions. Errors: Error if the programs have not passed verify(), or if times and sizes do not match
// their stages.
//
// Each rank runs its compute actions in order, one at a time. An action starts when the previous one has ended and its
// inputs have arrived: at the end of their producer, plus the link time if that is on another rank. Transfers do not
// occupy a rank and do not slow each other down. Without reductions, gathers and updates, these are the semantics of
// the bubble rates in the zero-bubble paper (arXiv 2401.10241, table 5).
//
// The gradients of a stage are reduced beside later passes, those of a rank one stage after another. The optimizer step
// starts on every rank when all gradients of all ranks are reduced, because it needs their norm, which takes no time.
// UNSHARD runs beside passes too, in one queue with the reductions of its rank; GATHER_PARAM follows the update.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/graph.hpp"
#include "schedule/program.hpp"
#include "schedule/time_span.hpp"

namespace triax::schedule {

/// Times of one microbatch on one stage. A whole backward takes the sum of input and weight. recompute_ms: of R; in a
/// program without R, B and I take so much longer.
struct PassTimes {
  double forward_ms = 0, input_ms = 0, weight_ms = 0, recompute_ms = 0;
};

/// Change of the memory that a rank keeps, by one pass of one microbatch. A forward adds; the other passes free; the
/// sum is 0. R changes nothing: what it computes is shared. Memory is added at the start of a pass and freed at its
/// end.
struct PassBytes {
  std::int64_t forward = 0, input = 0, weight = 0;
};

/// Times of one stage for the work that does not belong to a microbatch.
struct StageTimes {
  double reduce_ms = 0;    // reduction of its gradients
  double optimizer_ms = 0; // update of its parameters
  double gather_ms = 0;    // all-gather of its parameters: GATHER_PARAM, and each UNSHARD
};

struct Costs {
  std::vector<PassTimes> times; // by stage
  /// From the end of a pass to the start of a dependent pass on another rank: link i joins stages i and i + 1.
  /// Links within a rank take no time. Empty: links take no time.
  std::vector<double> link_ms{};
  std::vector<StageTimes> stages{};                     // by stage; empty: this work takes no time
  std::vector<PassBytes> bytes{};                       // by stage; empty: memory is not simulated
  std::optional<std::int64_t> cap_bytes = std::nullopt; // limit per rank
};

struct Simulation {
  std::vector<std::vector<Graph::Time>> actions; // in ms, by rank and position in its program
  TimeSpan time_span;                            // of all passes, in ms
  double step_ms = 0;                            // when the last action ends; the first ones start at 0
  std::vector<int> peak_in_flight;               // by rank: forwards whose backward has not ended, counted per stage
  std::vector<std::int64_t> peak_bytes;          // by rank
  std::optional<Graph::Entry> over_cap;          // first action over the cap, on the first such rank

  double makespan_ms() const { return time_span.length(); } // from the first start to the last end of all passes
};

/// Simulates the programs of all pipeline ranks.
Simulation simulate(std::span<const Program> programs, const Costs& costs);

} // namespace triax::schedule
