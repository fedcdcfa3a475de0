// SPDX-License-Identifier: Apache-2.0
// The runs that must be equal: layouts, schedules, chunks, microbatch sizes and kernel sets.
//
// all_asked() reads the environment; the other functions are pure.
//
// A fixed sample of the runs is always tested. `scripts/equality --all` (TRIAX_EQUALITY=all) tests every layout of up
// to twelve ranks with every schedule that supports it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace triax::equality {

struct Case {
  int pipeline = 1, tensor = 1, data = 1, chunks = 1;
  std::string scheduler = "sched-gpipe";
  std::int64_t micro = 1;
  std::int64_t microbatches = 4; // m, per data rank
  std::string kernels = "kernels-reference";
  std::int64_t layers = 5; // blocks
  /// Splits each whole backward of the rows into an input gradient and a weight gradient, delayed by one backward.
  bool split_backward = false;
  int group = 0; // schedule.group; 0: not set
  /// The scheduler's rows are written to a CSV file, and sched-file runs them.
  bool through_file = false;
  bool scatter_gather = false;
  bool recompute = false;         // memory.recompute = "full"
  bool cheap = false;             // memory.recompute = "cheap"
  bool partition = false;         // memory.partition_activations
  bool sequence_parallel = false; // parallel.sequence
  std::string shard{};            // optimizer.shard; empty: not set
  std::int64_t sequence = 5;      // tokens; not divisible by tensor sizes
  std::string split{};            // parallel.split as TOML; empty: not set
  bool offload = false;           // memory.offload = "disk", with the smallest buffers
  bool host_inputs = false;       // memory.offload_activations
  bool host_update = false;       // memory.offload = "optimizer", with the smallest blocks

  int world() const { return pipeline * tensor * data; }
  int stages() const { return pipeline * chunks; }
  std::int64_t samples() const { return microbatches * micro * data; } // of a step
};

/// Such as "p2 t2 d1 v2 b1 m4 l5 sched-interleaved kernels-cpu".
std::string to_text(const Case& run);

bool all_asked();

/// Runs with these tensor and data sizes. Each must give the bits of GPipe on one pipeline rank.
std::vector<Case> pipeline_cases(int tensor, int data);
/// Runs that must agree, up to rounding, with the same samples and layers on one rank. In the sample, kernels-cpu gets
/// a part of the cases.
std::vector<Case> rounding_cases(const std::string& kernels);

} // namespace triax::equality
