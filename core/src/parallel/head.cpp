// SPDX-License-Identifier: Apache-2.0
// The last layer of a model: final norm, then logits with its own copy of the token table. In training, they end in the
// loss.
#include "parallel/layer_part.hpp"
#include "triax/error.hpp"
#include "triax/shared_layers.hpp"

namespace triax {

using parallel::view;

namespace {

class LossHead final : public DescribedLayer {
 public:
  LossHead(const LayerContext& context, const VocabLayerOptions& options, int index)
      : DescribedLayer(context, index, "head", options.hidden),
        norm_(parts_, context, "norm", options.norm),
        normed_(parts_.add(StashSpec{"normed", stream_shape(), context.compute,
                                     context.sequence_parallel ? Life::forward_only : Life::forward_to_weight})),
        loss_(parts_, context, kTokenTable, options.hidden, options.init),
        logits_flops_(
            2.0 * static_cast<double>(context.micro) * static_cast<double>(context.max_rows) *
            static_cast<double>(options.hidden) *
            static_cast<double>(vocab_range(context.vocab, context.tensor_size(), context.tensor_rank()).valid)) {
    inputs_ = {stream(Life::forward_to_input), data("targets", Life::forward_to_input)};
    outputs_ = {{"loss", {context.micro}, DType::f64, Life::forward_only, false, -1}};
  }

  Cost cost() const override { return {logits_flops_, logits_flops_, logits_flops_}; }

  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override {
    const TensorView& normed = view(stash, normed_);
    norm_.forward(call, params, in[0], normed, stash);
    loss_.forward(call, params, normed, in[1], out[0], stash);
  }

  void backward_input(const LayerCall& call, Views params, Views in, Views, Views din, Views stash,
                      Views grads) override {
    const TensorView& dx = din[0];
    loss_.backward_input(call, params, in[1], dx, stash);
    norm_.backward(call, params, in[0], dx, {}, dx, stash, grads);
  }

  void backward_weight(const LayerCall& call, Views, Views stash, Views grads) override {
    loss_.backward_weight(call, view(stash, normed_), stash, grads); // with sequence parallelism, not read
  }

 private:
  Norm norm_;
  int normed_;
  VocabCrossEntropy loss_;
  double logits_flops_;
};

/// The head of a generating model; its parameters are those of LossHead.
class LogitsHead final : public DescribedLayer {
 public:
  LogitsHead(const LayerContext& context, const VocabLayerOptions& options, int index)
      : DescribedLayer(context, index, "head", options.hidden),
        norm_(parts_, context, "norm", options.norm),
        normed_(parts_.add(StashSpec{"normed", stream_shape(), context.compute, Life::forward_only})),
        logits_(parts_, context, kTokenTable, options.hidden, options.init) {
    inputs_ = {stream()};
    outputs_ = {{"logits", {context.max_rows, context.micro, context.vocab}, context.compute}};
  }

  Cost cost() const override { return {}; }

  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override {
    const TensorView& normed = view(stash, normed_);
    norm_.forward(call, params, in[0], normed, stash);
    logits_.forward(call, params, normed, out[0], stash);
  }
  void backward_input(const LayerCall&, Views, Views, Views, Views, Views, Views) override { refuse_backward(); }
  void backward_weight(const LayerCall&, Views, Views, Views) override { refuse_backward(); }

 private:
  [[noreturn]] void refuse_backward() const {
    throw Error("a head that ends in logits has no backward", name_, "create the layers with Purpose::train");
  }

  Norm norm_;
  int normed_;
  VocabLogits logits_;
};

} // namespace

std::unique_ptr<Layer> make_head(const LayerContext& context, const VocabLayerOptions& options, int index) {
  if (context.purpose == Purpose::generate) return std::make_unique<LogitsHead>(context, options, index);
  return std::make_unique<LossHead>(context, options, index);
}

} // namespace triax
