// SPDX-License-Identifier: Apache-2.0
// The base class of described layers, the embedding of tokens, and what shared layers refuse.
#include "triax/shared_layers.hpp"

#include <utility>

#include "parallel/layer_part.hpp"

namespace triax {

using parallel::view;

DescribedLayer::DescribedLayer(const LayerContext& context, int index, std::string name, std::int64_t hidden)
    : context_(context), index_(index), name_(std::move(name)), hidden_(hidden) {
  parts_.site0 = static_cast<std::uint32_t>(index) * 16;
}

namespace {

class TokenEmbedding final : public DescribedLayer {
 public:
  TokenEmbedding(const LayerContext& context, const VocabLayerOptions& options)
      : DescribedLayer(context, 0, "embedding", options.hidden),
        tokens_(parts_, context, kTokenTable, options.hidden, options.init),
        dout_(parts_.add(StashSpec{"dout", stream_shape(), context.compute, Life::input_to_weight})) {
    inputs_ = {data("tokens", Life::forward_to_weight)};
    outputs_ = {stream()};
  }

  Cost cost() const override { return {}; } // table lookups, no GEMM

  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override {
    tokens_.forward(call, params, in[0], out[0], stash);
  }
  void backward_input(const LayerCall& call, Views, Views, Views dout, Views, Views stash, Views) override {
    call.device.copy(view(stash, dout_), dout[0], call.stream); // the weight gradient does not have dout
    tokens_.backward_input(call, view(stash, dout_), stash);
  }
  void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) override {
    tokens_.backward_weight(call, in[0], view(stash, dout_), stash, grads);
  }

 private:
  VocabEmbedding tokens_;
  int dout_;
};

} // namespace

std::unique_ptr<Layer> make_token_embedding(const LayerContext& context, const VocabLayerOptions& options) {
  return std::make_unique<TokenEmbedding>(context, options);
}

Refusals shared_layer_refusals(const ModelRequest& request, const Layout& layout, std::string_view plugin,
                               std::int64_t sequence, std::int64_t heads) {
  const std::int64_t tensor = layout.tensor_size();
  Refusals out;
  if (request.sequence_parallel && sequence % tensor != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible, {"model.sequence", "parallel.tensor", "parallel.sequence"},
                         "model.sequence = {} is not divisible by parallel.tensor = {}: with parallel.sequence each "
                         "tensor rank has as many positions",
                         sequence, tensor)
                .with_hint("leave parallel.sequence out{}",
                           request.has_weights
                               ? std::string()
                               : text(", or use sequence {}", nearest_values(sequence, sequence + tensor, [&](auto s) {
                                        return s % tensor == 0;
                                      }))));
  const auto all_have_tokens = [&](int t) { return vocab_range(request.vocab, t, t - 1).valid > 0; };
  if (!all_have_tokens(layout.tensor_size()))
    out.add(make_refusal(ErrorCode::kOutOfRange, {"model.vocab", "parallel.tensor"},
                         "model.vocab = {} over parallel.tensor = {} leaves a tensor rank without tokens",
                         request.vocab, tensor)
                .with_hint("use tensor {}", nearest_values(tensor, tensor, [&](auto t) {
                             return heads % t == 0 && all_have_tokens(static_cast<int>(t));
                           })));
  if (!is_floating(request.compute))
    out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"}, "{} computes in a floating-point type, got {}",
                         plugin, name_of(request.compute)));
  return out;
}

} // namespace triax
