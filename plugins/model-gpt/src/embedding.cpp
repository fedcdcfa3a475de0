// SPDX-License-Identifier: Apache-2.0
// The first layer: token table (split by vocabulary) plus learned positions, then dropout.
#include "gpt.hpp"

namespace triax::model_gpt {

namespace {

class Embedding final : public GptLayer {
 public:
  Embedding(const Sizes& sizes, const LayerContext& context)
      : GptLayer(sizes, context, 0, "embedding"),
        tokens_(parts_, context, kTokenTable, sizes.hidden, weight_init()),
        positions_(parts_.add(position_table(sizes, context))),
        dsum_(parts_.add(StashSpec{"dsum", stream_shape(), context.compute, Life::input_to_weight})) {
    inputs_ = {data("tokens", Life::forward_to_weight)};
    outputs_ = {stream()};
  }

  Cost cost() const override { return {}; } // table lookups, no GEMM

  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override {
    const TensorView& hidden = out[0];
    tokens_.forward(call, params, in[0], hidden, stash);
    // Every sample adds the same table. Device::add takes strided views; the operations of kernel sets do not.
    for (std::int64_t sample = 0; sample < context_.micro; ++sample)
      call.device.add(of_sample(hidden, sample), own_positions(view(params, positions_), call), call.stream);
    const Drop drop = this->drop(call, 0, sizes_.hidden);
    if (drop.p > 0) call.kernels.dropout({hidden, hidden, drop}, call.op());
  }

  void backward_input(const LayerCall& call, Views, Views, Views dout, Views, Views stash, Views) override {
    call.kernels.dropout({view(stash, dsum_), dout[0], drop(call, 0, sizes_.hidden)}, call.op());
    tokens_.backward_input(call, view(stash, dsum_), stash);
  }

  void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) override {
    const TensorView& dsum = view(stash, dsum_);
    tokens_.backward_weight(call, in[0], dsum, stash, grads);
    const TensorView dpositions = own_positions(view(grads, positions_), call);
    for (std::int64_t sample = 0; sample < context_.micro; ++sample)
      call.device.add(dpositions, of_sample(dsum, sample), call.stream);
  }

 private:
  static ParamSpec position_table(const Sizes& sizes, const LayerContext& context) {
    ParamSpec spec = replicated("positions.weight", {sizes.sequence, sizes.hidden}, weight_init(), true);
    if (context.sequence_parallel) spec.partial = {std::string(kTensorAxis)};
    return spec;
  }

  // The rows [rows, 1, h] of one sample of [rows, b, h], and those of a table [s, h] in the same shape.
  static TensorView of_sample(const TensorView& tensor, std::int64_t sample) {
    return tensor.slice(1, sample, sample + 1);
  }
  TensorView own_positions(const TensorView& table, const LayerCall& call) const {
    const Rows rows = context_.own(call.rows);
    return table.slice(0, rows.begin, rows.end()).reshape({rows.count, 1, table.size(1)});
  }

  VocabEmbedding tokens_;
  int positions_;
  int dsum_; // gradient before dropout
};

} // namespace

std::unique_ptr<Layer> make_embedding(const Sizes& sizes, const LayerContext& context) {
  return std::make_unique<Embedding>(sizes, context);
}

} // namespace triax::model_gpt
