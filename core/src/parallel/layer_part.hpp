// SPDX-License-Identifier: Apache-2.0
// Helpers of the layer parts for tensor parallelism.
#pragma once

#include <string>
#include <utility>

#include "triax/error.hpp"
#include "triax/parallel.hpp"

namespace triax::parallel {

inline const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

/// The view, or an empty one for index -1: a parameter or a stash that the layer part does not have.
inline TensorView view_or_empty(Views views, int index) {
  return index < 0 ? TensorView{} : view(views, index);
}

/// Adds a tensor [s, b, width] of all rows to the stash, if the context's tensors have a part of them; else -1.
inline int add_of_all_rows(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t width,
                           Life life) {
  if (!context.sequence_parallel) return -1;
  TRIAX_REQUIRE(context.max_rows > 0 && context.max_rows % context.tensor_size() == 0,
                "{}: {} positions (LayerContext::max_rows) cannot be divided over {} tensor ranks", name,
                context.max_rows, context.tensor_size());
  return parts.add(StashSpec{std::move(name), {context.max_rows, context.micro, width}, context.compute, life});
}

/// The tensor ranks' parts of the positions, one after the other. Returns `part` if there is nothing to gather (`all`
/// -1).
inline TensorView gathered(const LayerCall& call, const TensorView& part, Views stash, int all) {
  if (all < 0) return part;
  Communicator* const tensor = call.groups.find(kTensorAxis);
  tensor->wait(tensor->all_gather(part, view(stash, all), call.stream, call.action), call.stream);
  return view(stash, all);
}

/// Where a sum over the tensor ranks is computed: `out`, or a tensor of all positions.
inline const TensorView& summand(const TensorView& out, Views stash, int all) {
  return all < 0 ? out : view(stash, all);
}
/// Adds the summands of the tensor ranks: all positions to `out`, or this rank's positions of the tensor `all`.
inline void add_summands(const LayerCall& call, const TensorView& out, Views stash, int all) {
  if (all < 0) return tensor_all_reduce(call, out);
  Communicator* const tensor = call.groups.find(kTensorAxis);
  tensor->wait(tensor->reduce_scatter(view(stash, all), out, Reduce::sum, call.stream, call.action), call.stream);
}

/// The type of statistics: of norms, and of the cross-entropy.
inline DType statistics_of(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

/// A weight [V, h] split by rows of the vocabulary; its last rows may be padding.
inline ParamSpec split_by_vocabulary(std::string name, std::int64_t hidden, Init init, const VocabRange& range,
                                     const LayerContext& context) {
  ParamSpec spec = replicated(std::move(name), {context.vocab, hidden}, init, true);
  if (context.tensor_size() == 1 && range.stored == context.vocab) return spec; // nothing split, nothing padded
  spec.cuts = {{std::string(kTensorAxis), 0, range.begin, range.begin + range.valid}};
  spec.local = {range.stored, hidden};
  return spec;
}

} // namespace triax::parallel
