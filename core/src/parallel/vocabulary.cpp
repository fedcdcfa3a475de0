// SPDX-License-Identifier: Apache-2.0
// Embedding and cross-entropy split over the tensor ranks by vocabulary. Matrix products leave out the rows and columns
// of padding, so their values are never read.
#include "parallel/piece.hpp"

namespace triax {

using parallel::add_summands;
using parallel::gathered;
using parallel::summand;
using parallel::view;

VocabEmbedding::VocabEmbedding(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden,
                               std::int64_t sequence, Init init)
    : range_(vocab_range(context.vocab, context.tensor(), context.tensor_index())) {
  table_ = parts.add(parallel::split_by_vocabulary(name, hidden, init, range_, context));
  all_y_ = parallel::add_of_all_rows(parts, context, name + ".y", sequence, hidden, Life::forward_only);
  all_dy_ = parallel::add_of_all_rows(parts, context, name + ".dy", sequence, hidden, Life::input_to_weight);
}

void VocabEmbedding::forward(const LayerCall& call, Views params, const TensorView& tokens, const TensorView& y,
                             Views stash) const {
  call.kernels.embed_fwd({summand(y, stash, all_y_), view(params, table_), tokens, range_.begin, range_.valid},
                         call.op());
  add_summands(call, y, stash, all_y_); // a token is a row of the table on one rank; the other ranks add zeros
}

void VocabEmbedding::backward_input(const LayerCall& call, const TensorView& dy, Views stash) const {
  gathered(call, dy, stash, all_dy_);
}

void VocabEmbedding::backward_weight(const LayerCall& call, const TensorView& tokens, const TensorView& dy, Views stash,
                                     Views grads) const {
  call.kernels.embed_bwd(
      {view(grads, table_), all_dy_ < 0 ? dy : view(stash, all_dy_), tokens, range_.begin, range_.valid}, call.op());
}

VocabCrossEntropy::VocabCrossEntropy(LayerParts& parts, const LayerContext& context, std::string name,
                                     std::int64_t hidden, std::int64_t sequence, Init init)
    : range_(vocab_range(context.vocab, context.tensor(), context.tensor_index())), tensor_(context.tensor()) {
  weight_ = parts.add(parallel::split_by_vocabulary(name, hidden, init, range_, context));
  const Shape rows{sequence, context.micro};
  const DType statistic = parallel::statistics_of(context.compute);
  const auto add = [&parts](const char* what, const Shape& shape, DType dtype, Life life) {
    return parts.add(StashSpec{what, shape, dtype, life});
  };
  logits_ = add("logits", {sequence, context.micro, range_.stored}, context.compute, Life::forward_to_weight);
  max_ = add("logits.max", rows, statistic, Life::forward_to_input);
  sum_exp_ = add("logits.sum_exp", rows, statistic, Life::forward_to_input);
  target_logit_ = add("logits.target", rows, statistic, Life::forward_only);
  all_x_ = parallel::add_of_all_rows(parts, context, name + ".x", sequence, hidden, Life::forward_to_weight);
  all_dx_ = parallel::add_of_all_rows(parts, context, name + ".dx", sequence, hidden, Life::input_only);
}

void VocabCrossEntropy::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& targets,
                                const TensorView& loss, Views stash) const {
  const TensorView& logits = view(stash, logits_);
  const TensorView& max = view(stash, max_);
  const TensorView& sum_exp = view(stash, sum_exp_);
  const TensorView& target_logit = view(stash, target_logit_);
  const TensorView all_x = gathered(call, x, stash, all_x_);
  if (range_.valid > 0) {
    Gemm product{logits.as_rows().slice(1, 0, range_.valid), all_x.as_rows(),
                 view(params, weight_).slice(0, 0, range_.valid)};
    product.transpose_b = true;
    call.kernels.gemm(product, call.op());
  }
  if (tensor_ == 1) {
    call.kernels.xent_fused({loss, max, sum_exp, target_logit, logits, targets, range_.valid}, call.op());
    return;
  }
  call.kernels.xent_max({max, logits, range_.valid}, call.op());
  tensor_all_reduce(call, max, Reduce::max);
  call.kernels.xent_sums({sum_exp, target_logit, logits, max, targets, range_.begin, range_.valid}, call.op());
  tensor_all_reduce(call, sum_exp);
  tensor_all_reduce(call, target_logit); // 0 on all ranks but the one that has the target
  call.kernels.xent_loss({loss, sum_exp, target_logit}, call.op());
}

void VocabCrossEntropy::backward_input(const LayerCall& call, Views params, const TensorView& targets,
                                       const TensorView& dx, Views stash) const {
  const TensorView& logits = view(stash, logits_);
  const TensorView& part_of_dx = summand(dx, stash, all_dx_);
  call.kernels.xent_bwd({logits, view(stash, max_), view(stash, sum_exp_), targets, range_.begin, range_.valid,
                         call.loss_gradient, call.scalars},
                        call.op());
  if (range_.valid > 0) {
    call.kernels.gemm({part_of_dx.as_rows(), logits.as_rows().slice(1, 0, range_.valid),
                       view(params, weight_).slice(0, 0, range_.valid)},
                      call.op());
  } else {
    call.device.fill(part_of_dx, 0, call.stream);
  }
  add_summands(call, dx, stash, all_dx_); // sum of the parts of dx from each rank's part of the vocabulary
}

void VocabCrossEntropy::backward_weight(const LayerCall& call, const TensorView& x, Views stash, Views grads) const {
  if (range_.valid == 0) return;
  Gemm product{view(grads, weight_).slice(0, 0, range_.valid), view(stash, logits_).as_rows().slice(1, 0, range_.valid),
               (all_x_ < 0 ? x : view(stash, all_x_)).as_rows()};
  product.transpose_a = true;
  product.beta = 1;
  call.kernels.gemm(product, call.op());
}

} // namespace triax
