// SPDX-License-Identifier: Apache-2.0
// Splits the blocks of a model into stages that take about the same time, by dynamic programming (the partitioners of
// GPipe, arXiv 1811.06965, and PipeDream, arXiv 1806.03377).
//
// Threads: pure functions. Errors: none.
//
// Loads are integers, so that all ranks of a run find the same split, and equal stages have equal loads.
#pragma once

#include <cstdint>
#include <vector>

namespace triax::cost {

/// The load of a layer, or of several.
struct StageLoad {
  std::int64_t time = 0;         // of all passes of a microbatch, in any unit; the sum of all layers is at most 2^31
  std::int64_t state_bytes = 0;  // weights, gradients, optimizer state
  std::int64_t flight_bytes = 0; // that a microbatch in flight keeps
  StageLoad& operator+=(const StageLoad& other) {
    time += other.time;
    state_bytes += other.state_bytes;
    flight_bytes += other.flight_bytes;
    return *this;
  }
  bool operator==(const StageLoad&) const = default;
};

struct SplitProblem {
  std::vector<StageLoad> blocks;
  StageLoad before, after;                  // layers of the first and the last stage beside blocks
  bool has_before = true, has_after = true; // there are such layers: then the stage needs no block
  int stages = 1;                           // few enough that an even split gives each stage a layer
};

/// Criteria of a split, the most important first; less is better.
struct SplitQuality {
  std::int64_t time = 0;    // of the slowest stage
  std::int64_t bytes = 0;   // of the stage that needs most: stage i of n has n - i microbatches in flight
  std::int64_t squares = 0; // sum of the squares of the stages' times
  auto operator<=>(const SplitQuality&) const = default;
};

/// Blocks of each stage, as many as possible the same, larger stages first.
std::vector<std::int64_t> even_split(const SplitProblem& problem);
/// Blocks of each stage; no other split is better. Equal blocks take microseconds (equal_block_split.hpp).
std::vector<std::int64_t> balanced_split(const SplitProblem& problem);
/// The same by dynamic programming, for any blocks.
std::vector<std::int64_t> programmed_split(const SplitProblem& problem);

SplitQuality quality_of(const SplitProblem& problem, const std::vector<std::int64_t>& split);
/// Time of each stage.
std::vector<std::int64_t> stage_times(const SplitProblem& problem, const std::vector<std::int64_t>& split);
/// How far the slowest stage is above the mean of all, as a fraction of the mean; 0 if the layers take no time.
double excess_of(const SplitProblem& problem, const std::vector<std::int64_t>& split);

} // namespace triax::cost
