// SPDX-License-Identifier: Apache-2.0
// A measurement of communicators: one side, or two that take turns, and their results.
//
// Threads: values, any. Errors: check() returns them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/comm_operation.hpp"
#include "bench/sides.hpp"

namespace triax::bench {

struct CommPlan {
  std::vector<Side> sides;   // one, or A and B
  bool may_be_equal = false; // the sides
  CommOperation operation = CommOperation::all_reduce;
  DType dtype = DType::f32;
  int ranks = 2;
  std::vector<std::int64_t> sizes; // bytes, ascending
  std::int64_t window = 32;        // messages in flight of a send
  std::int64_t rounds = 10;        // turns of one side; rounds A B B A of two
  double turn_s = 0.01;            // shortest duration of a turn: small calls are repeated
  double timeout_s = 60;           // for a call, and for the joining of all ranks
};

/// The errors of a plan that need no communicator.
Refusals check(const CommPlan& plan);
/// Whether this machine has the memory for the buffers of `ranks` ranks; `free_bytes` 0: not known.
Refusals check_memory(const CommPlan& plan, int ranks, std::int64_t free_bytes);

/// The times of one side at one size. A call takes as long as on its slowest rank.
struct SideTimes {
  std::int64_t calls = 0;                 // calls in a turn
  std::vector<double> turns_s;            // mean time of a call, by turn
  double min_s = 0, p50_s = 0, p99_s = 0; // of single calls, over all turns
};

struct SizeResult {
  std::int64_t bytes = 0;
  std::vector<SideTimes> sides;
};

double mean_s(const SideTimes& times);
/// Time of B / time of A.
compare::Ratio ratio_of(const SizeResult& result);

/// As one line, from a rank to the launcher, and back. Throws Error for a malformed line.
std::string to_line(const SizeResult& result);
SizeResult read_size_result(const std::string& line);

} // namespace triax::bench
