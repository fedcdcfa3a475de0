// SPDX-License-Identifier: Apache-2.0
// Descriptions of parameters (replicated, split, split by vocabulary), and the all-reduce of the tensor axis.
#include <algorithm>
#include <utility>

#include "triax/error.hpp"
#include "triax/parallel.hpp"

namespace triax {

int LayerParts::add(ParamSpec spec) {
  constexpr std::size_t kSites = 16;
  if (params.size() == kSites) {
    throw Error(text("a layer can have at most {} parameters; {} would be number {}", kSites, spec.name, kSites + 1),
                {}, "split the layer");
  }
  spec.site = site0 + static_cast<std::uint32_t>(params.size());
  params.push_back(std::move(spec));
  return static_cast<int>(params.size()) - 1;
}

int LayerParts::add(StashSpec spec) {
  stash.push_back(std::move(spec));
  return static_cast<int>(stash.size()) - 1;
}

VocabRange vocab_range(std::int64_t vocab, int tensor, int index) {
  TRIAX_REQUIRE(vocab > 0 && tensor > 0 && index >= 0 && index < tensor,
                "tensor rank {} is not in [0, {}), or the vocabulary {} is not positive", index, tensor, vocab);
  const std::int64_t part = (vocab + tensor - 1) / tensor;
  VocabRange range;
  range.stored = (part + kVocabMultiple - 1) / kVocabMultiple * kVocabMultiple;
  range.begin = std::min(index * part, vocab);
  range.valid = std::min(part, vocab - range.begin);
  return range;
}

ParamSpec replicated(std::string name, const Shape& shape, Init init, bool decay) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.global = shape;
  spec.local = shape;
  spec.init = init;
  spec.decay = decay;
  return spec;
}

ParamSpec split_along(int dim, std::string name, const Shape& global, Init init, bool decay,
                      const LayerContext& context) {
  const int tensor = context.tensor_size();
  if (tensor == 1) return replicated(std::move(name), global, init, decay);
  TRIAX_REQUIRE(dim >= 0 && dim < global.rank(), "{} {} has no dimension {}", name, to_text(global), dim);
  if (global[dim] % tensor != 0) {
    throw Error(
        text("{} {} is not divisible by parallel.tensor = {} along dimension {}", name, to_text(global), tensor, dim),
        {}, text("use a parallel.tensor that divides {}", global[dim]));
  }
  ParamSpec spec = replicated(std::move(name), global, init, decay);
  spec.local[dim] = global[dim] / tensor;
  const std::int64_t begin = context.tensor_rank() * spec.local[dim];
  spec.cuts = {{std::string(kTensorAxis), dim, begin, begin + spec.local[dim]}};
  return spec;
}

void tensor_all_reduce(const LayerCall& call, const TensorView& view, Reduce reduce) {
  Communicator* const tensor = call.groups.find(kTensorAxis);
  if (!tensor) return;
  tensor->wait(tensor->all_reduce(view, view, reduce, call.stream, call.action), call.stream);
}

} // namespace triax
