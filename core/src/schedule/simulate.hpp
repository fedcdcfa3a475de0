// How long a step takes: the longest paths through the graph of the proof (graph.hpp), with the times of the passes.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error if the programs have not passed verify(),
// or if times and sizes are not those of their stages.
//
// Each rank runs its compute actions in order, one at a time. One starts when the one before has ended and what it
// needs has arrived: the end of its producer, and a link's time if that is on another rank. A transfer never occupies a
// rank, and transfers do not slow one another down. What ends a step (gradient reduction, norm, optimizer) takes no
// time here. These are the semantics with which the zero-bubble paper computes its bubble rates (arXiv 2401.10241,
// table 5).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/extent.hpp"
#include "schedule/graph.hpp"
#include "schedule/program.hpp"

namespace triax::schedule {

/// One microbatch of one stage. A whole backward takes input and weight together.
struct PassTimes {
  double forward_ms = 0, input_ms = 0, weight_ms = 0;
};

/// What a rank keeps more when a pass of one microbatch has ended than before it began: a forward adds, the rest frees,
/// and together they come to nothing. What is added is there from the start of the pass, what is freed until its end.
struct PassBytes {
  std::int64_t forward = 0, input = 0, weight = 0;
};

struct Costs {
  std::vector<PassTimes> times;   // by stage
  double link_ms = 0;             // from the end of a pass to the start of one that needs it on another rank
  std::vector<PassBytes> bytes{}; // by stage; empty: nothing is counted
  std::optional<std::int64_t> cap_bytes = std::nullopt; // of each rank
};

struct Simulation {
  std::vector<std::vector<Graph::Time>> actions; // in ms, by rank and position in its program
  Extent extent;                                 // of all passes, in ms
  std::vector<int> peak_in_flight;               // by rank: forwards whose backward has not ended, counted per stage
  std::vector<std::int64_t> peak_bytes;          // by rank
  std::optional<Graph::Place> over_cap;          // of the first rank that has one, the first action that exceeds it

  double makespan_ms() const { return extent.length(); } // from the first start to the last end of all passes
};

/// Of the programs of all pipeline ranks.
Simulation simulate(std::span<const Program> programs, const Costs& costs);

} // namespace triax::schedule
