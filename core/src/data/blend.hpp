// SPDX-License-Identifier: Apache-2.0
// Blends several corpora: maps the running number of a sample to a corpus and to a sample number in that corpus. The
// map is a pure function, needs no table, and is exact at every position of a run.
//
// Threads: immutable value. Time: logarithmic in the number of corpora. Errors: Error for invalid arguments, such as a
// weight that is not above 0 or a negative number.
//
// The corpora are halved recursively. Of the first n samples that reach a group, round(n * (weight of its left half) /
// (its weight)) go to the left half. So among the first n samples of a run, each corpus has its share to within half a
// sample per halving: 2 samples for up to 16 corpora, 5 for 1024. Weights are rounded to multiples of 2^-40 of their
// sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace triax::data {

class Blend {
 public:
  /// Weights must be finite and above 0; their sum need not be 1.
  explicit Blend(const std::vector<double>& weights);
  /// Among as many samples as the sum of `counts`, each corpus has exactly its count.
  static Blend in_full(const std::vector<std::int64_t>& counts);

  struct Position {
    std::size_t corpus = 0;
    std::int64_t sample = 0; // number in that corpus
  };
  Position position_of(std::int64_t sample) const;
  /// Number of samples of this corpus among the first `samples` of the run.
  std::int64_t count(std::size_t corpus, std::int64_t samples) const;
  /// Limit of the corpus' part of all samples, in [0, 1].
  double share(std::size_t corpus) const;
  std::size_t corpora() const { return sums_.size() - 1; }

 private:
  Blend() : sums_{0} {}
  /// The number of samples of [first, middle) among the first `samples` of corpora [first, last).
  std::int64_t left_of(std::size_t first, std::size_t middle, std::size_t last, std::int64_t samples) const;

  std::vector<std::uint64_t> sums_; // sum of the weights before each corpus; last entry: of all weights
};

} // namespace triax::data
