// SPDX-License-Identifier: Apache-2.0
#include "data/blend.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "triax/error.hpp"

namespace triax::data {

namespace {

constexpr double kUnits = 1ull << 40;

} // namespace

Blend::Blend(const std::vector<double>& weights) {
  TRIAX_REQUIRE(!weights.empty(), "a blend of nothing");
  // Relative to the largest weight, because the sum of large weights can overflow to infinity.
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (const double weight : weights) {
    TRIAX_REQUIRE(std::isfinite(weight) && weight > 0, "a weight of {}", weight);
    sum += weight / largest;
  }
  sums_.push_back(0);
  for (const double weight : weights) {
    const double units = std::max(1.0, std::round(weight / largest / sum * kUnits));
    sums_.push_back(sums_.back() + static_cast<std::uint64_t>(units));
  }
}

Blend Blend::in_full(const std::vector<std::int64_t>& counts) {
  TRIAX_REQUIRE(!counts.empty(), "a blend of nothing");
  Blend out;
  for (const std::int64_t count : counts) {
    TRIAX_REQUIRE(count > 0, "a corpus of {} samples", count);
    out.sums_.push_back(out.sums_.back() + static_cast<std::uint64_t>(count));
  }
  return out;
}

std::int64_t Blend::left_of(std::size_t first, std::size_t middle, std::size_t last, std::int64_t samples) const {
  __extension__ using Wide = unsigned __int128;
  const Wide left = sums_[middle] - sums_[first], all = sums_[last] - sums_[first];
  return static_cast<std::int64_t>((static_cast<Wide>(samples) * left + all / 2) / all);
}

Blend::Position Blend::position_of(std::int64_t sample) const {
  TRIAX_REQUIRE(sample >= 0, "sample {}: samples are numbered from 0", sample);
  std::size_t first = 0, last = corpora();
  while (last - first > 1) {
    const std::size_t middle = std::midpoint(first, last);
    const std::int64_t before = left_of(first, middle, last, sample);
    if (left_of(first, middle, last, sample + 1) > before) {
      last = middle;
      sample = before;
    } else {
      first = middle;
      sample -= before;
    }
  }
  return {first, sample};
}

std::int64_t Blend::count(std::size_t corpus, std::int64_t samples) const {
  TRIAX_REQUIRE(corpus < corpora() && samples >= 0, "{} samples of corpus {} of {}", samples, corpus, corpora());
  std::size_t first = 0, last = corpora();
  while (last - first > 1) {
    const std::size_t middle = std::midpoint(first, last);
    const std::int64_t left = left_of(first, middle, last, samples);
    if (corpus < middle) {
      last = middle;
      samples = left;
    } else {
      first = middle;
      samples -= left;
    }
  }
  return samples;
}

double Blend::share(std::size_t corpus) const {
  return static_cast<double>(sums_[corpus + 1] - sums_[corpus]) / static_cast<double>(sums_.back());
}

} // namespace triax::data
