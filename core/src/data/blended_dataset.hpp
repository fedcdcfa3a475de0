// SPDX-License-Identifier: Apache-2.0
// Samples of several corpora, each with its weight.
//
// Threads: read-only after construction; any thread. Ownership: keeps the files open. Blocking: reads. Errors: Error
// with the file.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "data/blend.hpp"
#include "data/dataset.hpp"

namespace triax::data {

/// Corpora by prefix. Without weights, the weight of a corpus is its number of tokens.
struct Corpora {
  std::vector<std::filesystem::path> paths;
  std::vector<double> weights; // empty, or one per corpus
  std::string key{};           // the configuration key with the prefixes: "data.path", "data.paths"...
  bool in_full = false;        // as many samples as there are windows have each window once; `weights` are not used
};

/// The corpus of a sample depends on its running number (blend.hpp); its window depends on the seed and its number in
/// the corpus (dataset.hpp). With one corpus, the samples are those of its Dataset.
class BlendedDataset {
 public:
  /// Throws Error as the constructor of Dataset does.
  BlendedDataset(const Corpora& corpora, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed);

  /// As Dataset::microbatch(). Does not allocate.
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) const;

  const Blend& blend() const { return blend_; }
  const Dataset& corpus(std::size_t number) const { return datasets_[number]; }
  /// Number of epochs of this corpus in the first `samples` of a run.
  double epochs(std::size_t corpus, std::int64_t samples) const;

 private:
  std::vector<Dataset> datasets_;
  Blend blend_;
};

} // namespace triax::data
