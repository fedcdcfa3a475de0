// SPDX-License-Identifier: Apache-2.0
// Inputs whose results are known exactly: small integers, so that no sum rounds in any type or order.
//
// Element i of rank r is (37 r + i) modulo a prime. The prime limits the sum over all ranks to the integers that the
// type represents, and no block of a power of two elements repeats, so a block at a wrong position is found.
//
// Threads: const functions, any. Ownership: views are host memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/comm_operation.hpp"

namespace triax::bench {

/// The first wrong element of a rank's output.
struct WrongElement {
  std::int64_t element = 0, wrong_elements = 0; // its index; number of all wrong elements
  double got = 0, expected = 0;
};

/// Largest number of ranks whose sums the type represents: half of the ranks have a 1 at an element.
int max_exact_ranks(DType dtype);

class ExactValues {
 public:
  ExactValues(CommOperation operation, DType dtype, int ranks);

  /// The input of a rank; of a broadcast, the data of rank 0, and other values on other ranks.
  void write_input(int rank, const TensorView& view) const;
  /// Values that no result has.
  void write_invalid(const TensorView& view) const;
  /// Compares the output of a rank.
  std::optional<WrongElement> find_wrong(int rank, const TensorView& output) const;

 private:
  /// Element i of the rank's output for i in [begin, end) is row[(first + i - begin) % row.size()].
  struct Run {
    std::int64_t begin = 0, end = 0;
    std::vector<int> row;
    std::int64_t first = 0;
  };
  std::vector<Run> runs_of(int rank, std::int64_t elements) const;
  int value(int rank, std::int64_t element) const;
  std::vector<int> row_of(int rank) const;
  std::vector<int> summed_row() const;

  const CommOperation operation_;
  const int ranks_;
  const int prime_;
};

} // namespace triax::bench
