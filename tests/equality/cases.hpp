// The runs that must be equal: layouts, schedules, chunks, microbatch sizes and kernel sets.
//
// Threads: pure, but for all_asked(), which reads the environment. Ownership: values. Blocking: never.
//
// A sample of the runs is fixed here and runs everywhere; `scripts/equality --all` (TRIAX_EQUALITY=all) runs every
// layout of up to twelve ranks with every schedule that can do it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triax::equality {

struct Case {
  int pipeline = 1, tensor = 1, data = 1, chunks = 1;
  std::string scheduler = "sched-gpipe";
  std::int64_t micro = 1;
  std::int64_t microbatches = 4; // m: of each data rank
  std::string kernels = "kernels-reference";
  std::int64_t layers = 5; // blocks
  /// Each whole backward of the rows becomes an input gradient, and its weight gradient comes one backward later.
  bool split_backward = false;
  int group = 0; // schedule.group; 0: not set
  /// The scheduler's rows are written to a CSV file, and sched-file runs them.
  bool through_file = false;
  bool scatter_gather = false;

  int world() const { return pipeline * tensor * data; }
  int stages() const { return pipeline * chunks; }
  std::int64_t samples() const { return microbatches * micro * data; } // of a step
};

/// "p2 t2 d1 v2 b1 m4 l5 sched-interleaved kernels-cpu"
std::string to_text(const Case& run);

bool all_asked();

/// Runs that at these tensor and data sizes must give the bits of plain GPipe on one pipeline rank.
std::vector<Case> pipeline_cases(int tensor, int data);
/// Runs that must agree to rounding with the same samples and layers on one rank; of the sample, kernels-cpu gets a
/// part.
std::vector<Case> rounding_cases(const std::string& kernels);

} // namespace triax::equality
