// SPDX-License-Identifier: Apache-2.0
// Embedding, cross-entropy and logits split over the tensor ranks by vocabulary. Matrix products leave out the rows and
// columns of padding, so their values are never read.
#include "parallel/layer_part.hpp"

namespace triax {

using parallel::add_summands;
using parallel::gathered;
using parallel::summand;
using parallel::view;

namespace {

/// x W^T of this rank's part of the vocabulary, in the columns of `logits` that are not padding.
void multiply(const LayerCall& call, const TensorView& logits, const TensorView& x, const TensorView& weight,
              const VocabRange& range) {
  if (range.valid == 0) return;
  Gemm product{logits.as_rows().slice(1, 0, range.valid), x.as_rows(), weight.slice(0, 0, range.valid)};
  product.transpose_b = true;
  call.kernels.gemm(product, call.op());
}

} // namespace

VocabEmbedding::VocabEmbedding(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden,
                               Init init)
    : range_(vocab_range(context.vocab, context.tensor_size(), context.tensor_rank())) {
  table_ = parts.add(parallel::split_by_vocabulary(name, hidden, init, range_, context));
  all_y_ = parallel::add_of_all_rows(parts, context, name + ".y", hidden, Life::forward_only);
  all_dy_ = parallel::add_of_all_rows(parts, context, name + ".dy", hidden, Life::input_to_weight);
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
                                     std::int64_t hidden, Init init)
    : range_(vocab_range(context.vocab, context.tensor_size(), context.tensor_rank())), tensor_(context.tensor_size()) {
  weight_ = parts.add(parallel::split_by_vocabulary(name, hidden, init, range_, context));
  const Shape rows{context.max_rows, context.micro};
  const DType statistic = parallel::statistics_of(context.compute);
  const auto add = [&parts](const char* what, const Shape& shape, DType dtype, Life life) {
    return parts.add(StashSpec{what, shape, dtype, life});
  };
  logits_ = add("logits", {context.max_rows, context.micro, range_.stored}, context.compute, Life::forward_to_weight);
  max_ = add("logits.max", rows, statistic, Life::forward_to_input);
  sum_exp_ = add("logits.sum_exp", rows, statistic, Life::forward_to_input);
  target_logit_ = add("logits.target", rows, statistic, Life::forward_only);
  all_x_ = parallel::add_of_all_rows(parts, context, name + ".x", hidden, Life::forward_to_weight);
  all_dx_ = parallel::add_of_all_rows(parts, context, name + ".dx", hidden, Life::input_only);
}

void VocabCrossEntropy::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& targets,
                                const TensorView& loss, Views stash) const {
  const TensorView& logits = view(stash, logits_);
  const TensorView& max = view(stash, max_);
  const TensorView& sum_exp = view(stash, sum_exp_);
  const TensorView& target_logit = view(stash, target_logit_);
  multiply(call, logits, gathered(call, x, stash, all_x_), view(params, weight_), range_);
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

VocabLogits::VocabLogits(LayerParts& parts, const LayerContext& context, std::string name, std::int64_t hidden,
                         Init init)
    : vocab_(context.vocab),
      tensor_(context.tensor_size()),
      range_(vocab_range(context.vocab, context.tensor_size(), context.tensor_rank())) {
  TRIAX_REQUIRE(!context.sequence_parallel, "{}: logits of divided positions (sequence parallelism)", name);
  weight_ = parts.add(parallel::split_by_vocabulary(std::move(name), hidden, init, range_, context));
  const Shape part{context.max_rows, context.micro, range_.stored};
  part_ = parts.add(StashSpec{"logits.part", part, context.compute, Life::forward_only});
  if (tensor_ > 1)
    all_parts_ = parts.add(
        StashSpec{"logits.parts", {tensor_, part[0], part[1], part[2]}, context.compute, Life::forward_only, 1});
}

void VocabLogits::forward(const LayerCall& call, Views params, const TensorView& x, const TensorView& logits,
                          Views stash) const {
  const TensorView& part = view(stash, part_);
  multiply(call, part, x, view(params, weight_), range_);
  gathered(call, part, stash, all_parts_);
  for (int index = 0; index < tensor_; ++index) {
    const VocabRange range = vocab_range(vocab_, tensor_, index);
    const TensorView from = all_parts_ < 0 ? part : view(stash, all_parts_).at(index);
    if (range.valid > 0)
      call.device.copy(logits.slice(2, range.begin, range.begin + range.valid), from.slice(2, 0, range.valid),
                       call.stream);
  }
}

} // namespace triax
