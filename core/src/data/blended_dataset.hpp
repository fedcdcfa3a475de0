// Samples of several corpora, each with its weight.
//
// Threads: read-only after opening; any thread. Ownership: keeps the files open. Blocking: reads. Errors: Error naming
// the file.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "data/blend.hpp"
#include "data/dataset.hpp"

namespace triax::data {

/// Corpora by their prefixes. Without weights, each counts as its tokens.
struct Corpora {
  std::vector<std::filesystem::path> paths;
  std::vector<double> weights; // none, or one of each
  std::string key{};           // of the configuration that names them: "data.path", "data.paths"...
};

/// A sample's corpus is a function of its running number (blend.hpp), its window one of the seed and of its number
/// within the corpus (dataset.hpp). Of one corpus, these are the samples of that Dataset.
class BlendedDataset {
 public:
  /// Throws Error as Dataset does.
  BlendedDataset(const Corpora& corpora, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed);

  /// As Dataset::microbatch. Does not allocate.
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) const;

  const Blend& blend() const { return blend_; }
  const Dataset& corpus(std::size_t number) const { return datasets_[number]; }
  /// How often the first `samples` of a run go through this corpus.
  double epochs(std::size_t corpus, std::int64_t samples) const;

 private:
  std::vector<Dataset> datasets_;
  Blend blend_;
};

} // namespace triax::data
