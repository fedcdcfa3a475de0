// SPDX-License-Identifier: Apache-2.0
// The content of corpora as checkpoints record it, so that a run does not continue unnoticed on other data.
//
// Threads: pure function. Blocking: never.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "data/blended_dataset.hpp"

namespace triax::train {

inline std::vector<checkpoint::CorpusContent> content_of(const data::BlendedDataset& dataset) {
  std::vector<checkpoint::CorpusContent> out;
  out.reserve(dataset.blend().corpora());
  for (std::size_t number = 0; number < dataset.blend().corpora(); ++number) {
    const data::Dataset& corpus = dataset.corpus(number);
    out.push_back({corpus.tokens(), corpus.checksum(), {}});
    if (const std::optional<data::TokenizerInfo>& of = corpus.tokenizer())
      out.back().tokenizer = {of->kind, of->vocab, of->digest};
  }
  return out;
}

} // namespace triax::train
