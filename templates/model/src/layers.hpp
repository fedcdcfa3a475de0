// SPDX-License-Identifier: Apache-2.0
// The blocks of the model. Layers describe tensors and compute; the engine owns all memory (triax/model.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <triax/model.hpp>

namespace triax::model_template {

/// The [model] table.
struct Sizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, sequence = 0;
  std::int64_t head_dim() const { return hidden / heads; }
};

inline constexpr Init kWeightInit{Init::Kind::normal, 0.02}; // GPT-2's

std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index);

} // namespace triax::model_template
