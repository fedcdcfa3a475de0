// SPDX-License-Identifier: Apache-2.0
#include "data/blended_dataset.hpp"

#include "triax/error.hpp"

namespace triax::data {

namespace {

std::vector<Dataset> open(const Corpora& corpora, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed) {
  TRIAX_REQUIRE(!corpora.paths.empty() && (corpora.weights.empty() || corpora.weights.size() == corpora.paths.size()),
                "{} corpora with {} weights", corpora.paths.size(), corpora.weights.size());
  std::vector<Dataset> out;
  out.reserve(corpora.paths.size());
  for (const std::filesystem::path& path : corpora.paths) out.emplace_back(path, sequence, vocab, seed);
  return out;
}

Blend blend_of(const Corpora& corpora, const std::vector<Dataset>& datasets) {
  if (corpora.in_full) {
    std::vector<std::int64_t> windows;
    windows.reserve(datasets.size());
    for (const Dataset& dataset : datasets) windows.push_back(dataset.samples_per_epoch());
    return Blend::in_full(windows);
  }
  if (!corpora.weights.empty()) return Blend(corpora.weights);
  std::vector<double> out;
  out.reserve(datasets.size());
  for (const Dataset& dataset : datasets) out.push_back(static_cast<double>(dataset.tokens()));
  return Blend(out);
}

} // namespace

BlendedDataset::BlendedDataset(const Corpora& corpora, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed)
    : datasets_(open(corpora, sequence, vocab, seed)), blend_(blend_of(corpora, datasets_)) {}

void BlendedDataset::microbatch(std::span<const std::int64_t> samples, const TensorView& tokens,
                                const TensorView& targets) const {
  datasets_.front().check_views(samples.size(), tokens, targets);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Blend::Position position = blend_.position_of(samples[i]);
    datasets_[position.corpus].fill(position.sample, static_cast<std::int64_t>(i), tokens, targets);
  }
}

double BlendedDataset::epochs(std::size_t corpus, std::int64_t samples) const {
  return static_cast<double>(blend_.count(corpus, samples)) /
         static_cast<double>(datasets_[corpus].samples_per_epoch());
}

} // namespace triax::data
