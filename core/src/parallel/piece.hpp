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

/// The view, or an empty one for index -1: a parameter or a stash that the piece does not have.
inline TensorView view_or_empty(Views views, int index) {
  return index < 0 ? TensorView{} : view(views, index);
}

/// The type of statistics: of norms, and of the cross-entropy.
inline DType statistics_of(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
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
