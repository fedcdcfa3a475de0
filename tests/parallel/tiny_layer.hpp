// SPDX-License-Identifier: Apache-2.0
// One layer made of all tensor-parallel parts, run forward and backward on the ranks of a tensor group; the results are
// merged from the shards.
//
// Threads: run_tiny() runs one thread per rank. Blocking: until all ranks have finished.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "triax/parallel.hpp"

namespace triax::test {

struct TinyCase {
  int tensor = 1;
  DType dtype = DType::f64;
  std::int64_t vocab = 13;
  bool sequence_parallel = false;
  bool gated = false; // RMS norm, SwiGLU without biases; otherwise layer norm, GELU, biases
  /// Adds `step` to one element of one whole parameter before the run.
  std::string nudged = {};
  std::size_t nudged_element = 0;
  double step = 0;

  static constexpr std::int64_t kSequence = 12, kMicro = 2, kHidden = 10, kInner = 24;
};

struct TinyResult {
  std::vector<double> loss;                             // [b]
  std::vector<double> hidden;                           // y [s, b, h]
  std::map<std::string, std::vector<double>> gradients; // whole, by parameter
  std::vector<Shape> logits;                            // by rank
  /// All-reduces that each part posts, the same on all ranks.
  std::map<std::string, std::uint64_t> all_reduces;
  std::uint64_t loss_bytes = 0; // sent by all ranks together in the forward of the cross-entropy
};

/// Weights depend on the element of the whole parameter; padding is NaN; gradients start as zeros.
TinyResult run_tiny(const TinyCase& tiny);

} // namespace triax::test
