// Which of several corpora a sample is from, and which of that corpus' samples it is: a function of its running number
// alone, computed without a table, and exact at any place of a run.
//
// Threads: a value; pure. Ownership: values. Blocking: never. Time: logarithmic in the number of corpora. Errors:
// Error of what a caller may not ask: a weight that is not above 0, a number below 0.
//
// The corpora are halved, and halved again. Of the first n samples that reach a group, the nearest whole number to
// n * (weight of its left half) / (its weight) go to the left: so of the first n samples of a run, every corpus has its
// share to within half a sample for each halving: two for up to 16 corpora, five for 1024. Weights count as whole
// multiples of a 2^40th of their sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace triax::data {

class Blend {
 public:
  /// Weights are finite and above 0; they need not add up to 1.
  explicit Blend(const std::vector<double>& weights);

  struct Place {
    std::size_t corpus = 0;
    std::int64_t sample = 0; // of that corpus
  };
  Place place_of(std::int64_t sample) const;
  /// How many of the first `samples` of the run are of this corpus.
  std::int64_t count(std::size_t corpus, std::int64_t samples) const;
  /// Of all samples, in the long run.
  double share(std::size_t corpus) const;
  std::size_t corpora() const { return sums_.size() - 1; }

 private:
  /// Of the first `samples` of corpora [first, last), those of [first, middle).
  std::int64_t left_of(std::size_t first, std::size_t middle, std::size_t last, std::int64_t samples) const;

  std::vector<std::uint64_t> sums_; // of the weights before each corpus, and of all
};

} // namespace triax::data
