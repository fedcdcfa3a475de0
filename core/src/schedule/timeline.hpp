// SPDX-License-Identifier: Apache-2.0
// Timeline: start and end of each action of each pipeline rank, simulated or measured. The input of all tables,
// pictures, JSON and traces of schedules.
//
// Threads: values and pure functions. Errors: time_span() throws Error for a timeline that cannot be drawn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/simulate.hpp"

namespace triax::schedule {

/// One action of a rank, in the unit of its timeline.
struct Span {
  Kind kind = Kind::forward;
  std::int32_t stage = -1;      // -1: whole rank
  std::int32_t microbatch = -1; // -1: not for a single microbatch
  double start = 0, end = 0;
  double length() const { return end - start; }
};

struct Timeline {
  enum class Unit { pass, ms }; // pass: the time of one F, I, W or R; B takes two
  PipelineShape shape;
  StageMap stage_map;
  Unit unit = Unit::ms;
  std::vector<std::vector<Span>> rows; // by rank, in running order; any clock, but the same for all ranks
};

/// Simulated timeline of the passes (F, B, I, W and R) of the programs.
Timeline planned(std::span<const Program> programs, const Simulation& simulation, const PipelineShape& shape,
                 Timeline::Unit unit);

/// Active interval and work of the passes of a row.
RankTimeSpan time_span(std::span<const Span> row);
/// Active time and work of a timeline, in its unit. The first start and last end include actions that are not passes.
/// Throws Error with rank and position if a span ends before it starts, a time is not finite, or a stage is not in the
/// map.
TimeSpan time_span(const Timeline& timeline);

/// Microbatch chunks in flight on a rank. whole: with everything that the backward needs. weight: after
/// the input gradient, with only what the weight gradient needs.
struct InFlight {
  double from = 0; // valid until `from` of the next entry
  int whole = 0, weight = 0;
  int all() const { return whole + weight; }
};
/// A forward adds a microbatch chunk at its start; a backward removes it at its end.
std::vector<InFlight> in_flight(std::span<const Span> row);
int peak_of(std::span<const InFlight> in_flight);

} // namespace triax::schedule
