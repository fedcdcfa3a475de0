// SPDX-License-Identifier: Apache-2.0
// The content of corpora as checkpoints record it, so that a run does not continue unnoticed on other data.
//
// Threads: pure function. Blocking: never.
#pragma once

#include <cstddef>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "data/blended_dataset.hpp"

namespace triax::train {

inline std::vector<checkpoint::CorpusContent> content_of(const data::BlendedDataset& dataset) {
  std::vector<checkpoint::CorpusContent> out;
  out.reserve(dataset.blend().corpora());
  for (std::size_t number = 0; number < dataset.blend().corpora(); ++number)
    out.push_back({dataset.corpus(number).tokens(), dataset.corpus(number).checksum()});
  return out;
}

} // namespace triax::train
