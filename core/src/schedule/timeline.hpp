// What each pipeline rank does from when to when: planned, from the simulator, or measured. Tables, pictures, JSON and
// traces of schedules are made of this alone.
//
// Threads: values and pure functions. Ownership: values. Blocking: never. Errors: extent() tells what cannot be drawn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/simulate.hpp"

namespace triax::schedule {

/// One action of a rank, in the unit of its timeline.
struct Span {
  Kind kind = Kind::forward;
  std::int32_t stage = -1;      // -1: of the whole rank
  std::int32_t microbatch = -1; // -1: of no single one
  double start = 0, end = 0;
  double length() const { return end - start; }
};

struct Timeline {
  enum class Unit { pass, ms }; // pass: what F, I and W take; B takes two
  PipelineShape shape;
  StageMap stage_map;
  Unit unit = Unit::ms;
  std::vector<std::vector<Span>> rows; // by rank, in the order in which they run; any clock, the same for all ranks
};

/// The passes of the programs, F, B, I and W, when the simulator has them run.
Timeline planned(std::span<const Program> programs, const Simulation& simulation, const PipelineShape& shape,
                 Timeline::Unit unit);

/// The passes of a row.
RankExtent extent(std::span<const Span> row);
/// What a timeline comes to, in its unit; its first start and last end are also those of what is no pass.
/// Throws Error, naming rank and position, at a span that ends before it starts, at times that are no numbers, at
/// stages that the map does not have.
Extent extent(const Timeline& timeline);

/// How many microbatches a rank has in flight, counted per stage: all that their backward needs, or after their input
/// gradient only what the weight gradient does.
struct InFlight {
  double from = 0; // until the next one's
  int whole = 0, weight = 0;
  int all() const { return whole + weight; }
};
/// A forward adds one when it starts; a backward takes it when it ends.
std::vector<InFlight> in_flight(std::span<const Span> row);
int peak_of(std::span<const InFlight> in_flight);

} // namespace triax::schedule
