// SPDX-License-Identifier: Apache-2.0
// How many bytes of text the targets of samples stand for. A loss per byte can be compared between tokenizers, which a
// loss per token cannot.
//
// Threads: pure function. Blocking: reads the samples. Errors: Error of a corpus that was changed meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "data/blended_dataset.hpp"

namespace triax::data {

struct TargetBytes {
  std::int64_t bytes = 0;
  std::string unknown = {}; // why the number is not known; else empty
};

/// The bytes of text in samples [0, count), each of `sequence` targets. The token that ends a document stands for no
/// text.
TargetBytes target_bytes(const Corpora& corpora, const BlendedDataset& samples, std::int64_t sequence,
                         std::int64_t count);

} // namespace triax::data
