// SPDX-License-Identifier: Apache-2.0
// Layers that language models share: a base class that stores descriptions, the embedding of tokens, and the head. A
// model adds its blocks.
//
// Threads, ownership, blocking: as for layers (model.hpp). Errors: Error. All of them work with tensor and sequence
// parallelism, recomputation, and for both purposes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/error.hpp"
#include "triax/parallel.hpp"
#include "triax/text.hpp"

namespace triax {

/// Stores a layer's name and descriptions. The constructors of derived classes fill `parts_`, `inputs_` and `outputs_`.
class TRIAX_API DescribedLayer : public Layer {
 public:
  /// `index`: number of the layer in the model, from which its random sites follow. `hidden`: h.
  DescribedLayer(const LayerContext& context, int index, std::string name, std::int64_t hidden);

  /// As Layer.
  /// @{
  std::string_view name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return parts_.params; }
  std::span<const StashSpec> stash() const override { return parts_.stash; }
  std::span<const TensorSpec> inputs() const override { return inputs_; }
  std::span<const TensorSpec> outputs() const override { return outputs_; }
  /// @}

 protected:
  /// The shape of the residual stream, [rows, b, h]: the rows of this rank with sequence parallelism, else all of a
  /// call.
  Shape stream_shape() const { return {context_.own_rows(), context_.micro, hidden_}; }
  /// The residual stream as a boundary; `life`: how long a layer reads it as its input.
  TensorSpec stream(Life life = Life::forward_only) const {
    return {"hidden", stream_shape(), context_.compute, life, context_.sequence_parallel};
  }
  /// The tokens or targets of a microbatch, [s, b].
  TensorSpec data(std::string name, Life life) const {
    return {std::move(name), {context_.max_rows, context_.micro}, DType::i32, life};
  }

  LayerContext context_;                     ///< of the constructor
  int index_;                                ///< in the model
  std::string name_;                         ///< for messages: "block 3"
  std::int64_t hidden_;                      ///< h
  LayerParts parts_;                         ///< parameters and stash
  std::vector<TensorSpec> inputs_, outputs_; ///< boundaries
};

/// Name of the token table in the embedding and in the head of this header; a model may tie the two.
inline constexpr const char* kTokenTable = "tokens.weight";

/// Options of make_token_embedding() and make_head().
struct VocabLayerOptions {
  std::int64_t hidden = 0; // h
  Init init{};             // of the token table
  NormOptions norm{};      // of the head: the final norm
};

/// The first layer: rows of the token table, split by vocabulary. Input "tokens", output "hidden".
TRIAX_API std::unique_ptr<Layer> make_token_embedding(const LayerContext& context, const VocabLayerOptions& options);
/// The last layer, number `index` of the model: "norm", and logits with its own token table. In training it ends in the
/// loss; for Purpose::generate it ends in the logits and has no backward.
TRIAX_API std::unique_ptr<Layer> make_head(const LayerContext& context, const VocabLayerOptions& options, int index);

/// "4 or 6", for hints: the nearest values below and above `number`, of 1 to `limit`, for which fits(value) is true.
template <class Fits>
std::string nearest_values(std::int64_t number, std::int64_t limit, Fits fits) {
  std::int64_t below = number - 1, above = number + 1;
  while (below >= 1 && !fits(below)) --below;
  while (above <= limit && !fits(above)) ++above;
  if (above > limit) return below >= 1 ? text("{}", below) : std::string();
  return below >= 1 ? text("{} or {}", below, above) : text("{}", above);
}

/// The reasons why these layers cannot serve a request: positions that cannot be divided for sequence parallelism, a
/// tensor rank without tokens, a compute type that is not floating. `sequence`: s; `heads`: what else the tensor ranks
/// divide, for hints.
TRIAX_API Refusals shared_layer_refusals(const ModelRequest& request, const Layout& layout, std::string_view plugin,
                                         std::int64_t sequence, std::int64_t heads);

} // namespace triax
