// SPDX-License-Identifier: Apache-2.0
// Helpers of the tensor-parallel layers.
#pragma once

#include <string>
#include <utility>

#include "triax/parallel.hpp"

namespace triax::parallel {

inline const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

/// A weight [V, h] split by rows of the vocabulary; its last rows may be padding.
inline ParamSpec split_by_vocabulary(std::string name, std::int64_t hidden, Init init, const VocabRange& range,
                                     const LayerContext& context) {
  ParamSpec spec = replicated(std::move(name), {context.vocab, hidden}, init, true);
  if (context.tensor() == 1 && range.stored == context.vocab) return spec; // nothing split, nothing padded
  spec.cuts = {{std::string(kTensorAxis), 0, range.begin, range.begin + range.valid}};
  spec.local = {range.stored, hidden};
  return spec;
}

} // namespace triax::parallel
