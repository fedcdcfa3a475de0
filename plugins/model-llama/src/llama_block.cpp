// SPDX-License-Identifier: Apache-2.0
// A transformer block: x + attention(norm(x)), then the same with the MLP, whose gate and up projections are one linear
// layer. The linears of triax/parallel.hpp do the all-reduces: two forward, two backward.
#include <triax/cheap_recompute.hpp>
#include <triax/recompute_steps.hpp>

#include "llama_attention.hpp"

namespace triax::model_llama {

namespace {

/// The parts of the forward. Those that compute what earlier ones have written, too, need no matrix product; the
/// forward leaves them out.
enum class Step : std::uint8_t { first_norm, qkv, head_norms, core, projection, second_norm, up, silu };

class Block final : public DescribedLayer, public CheapRecompute, public RecomputeSteps {
 public:
  Block(const Sizes& sizes, const LayerContext& context, int index);

  Cost cost() const override { return cost_; }
  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override;
  void backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                      Views grads) override;
  void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) override;

  void* extension(std::string_view id) noexcept override {
    if (id == CheapRecompute::kExtension) return static_cast<CheapRecompute*>(this);
    return id == RecomputeSteps::kExtension ? static_cast<RecomputeSteps*>(this) : nullptr;
  }
  std::span<const int> recomputed_stash() const override { return recomputed_; }
  void recompute(const LayerCall& call, Views params, Views in, Views stash) override;
  std::span<const RecomputeStep> steps() const override { return steps_; }
  void recompute_step(const LayerCall& call, int step, Views params, Views in, Views stash) override {
    run(call, kinds_[static_cast<std::size_t>(step)], params, in, stash);
  }

 private:
  void list_steps();
  void run(const LayerCall& call, Step step, Views params, Views in, Views stash) const;
  /// middle = in[0] + projection, and its norm.
  void project(const LayerCall& call, Views params, Views in, Views stash) const;
  int add_stream(const char* name, Life life) {
    return parts_.add(StashSpec{name, stream_shape(), context_.compute, life});
  }
  int add_columns(const char* name, std::int64_t columns, Life life) {
    return parts_.add(StashSpec{name, {context_.max_rows, context_.micro, columns}, context_.compute, life});
  }
  /// `gradient` where the weight gradient finds it: a copy, or what a linear layer has gathered.
  TensorView kept(const LayerCall& call, const TensorView& gradient, int copy, Views stash) const {
    if (copy < 0) return gradient;
    call.device.copy(view(stash, copy), gradient, call.stream);
    return view(stash, copy);
  }
  static TensorView view_or_empty(Views stash, int index) { return index < 0 ? TensorView{} : view(stash, index); }

  Norm norm1_;
  Attention attention_;
  Norm norm2_;
  ColumnLinear up_;
  RowLinear down_;
  Cost cost_;

  // Indices in the stash. How long each tensor is kept: Life, in the constructor.
  int middle_, before_silu_, normed1_, normed2_, after_silu_, sum_, dup_;
  int dattention_ = -1, ddown_ = -1; // without sequence parallelism
  std::vector<int> recomputed_;      // computed again without matrix products
  std::vector<RecomputeStep> steps_; // empty when generating
  std::vector<Step> kinds_;          // of each of them
};

Cost block_cost(const Sizes& sizes, const LayerContext& context) {
  const double b = static_cast<double>(context.micro), s = static_cast<double>(context.max_rows),
               h = static_cast<double>(sizes.hidden), f = static_cast<double>(sizes.inner),
               d = static_cast<double>(sizes.head_size), a = static_cast<double>(sizes.heads),
               k = static_cast<double>(sizes.kv_heads), t = context.tensor_size();
  const double linears = 2 * b * s * h * (2 * d * (a + k) + 3 * f) / t; // q, k, v, projection; gate, up, down
  const double scores = 4 * b * s * s * a * d / t; // q k^T and p v; twice that for the input gradient
  return {linears + scores, linears + 2 * scores, linears};
}

Block::Block(const Sizes& sizes, const LayerContext& context, int index)
    : DescribedLayer(context, index, "block " + std::to_string(index - 1), sizes.hidden),
      norm1_(parts_, context, "attention.norm", sizes.norm_options()),
      attention_(parts_, context, sizes),
      norm2_(parts_, context, "mlp.norm", sizes.norm_options()),
      up_(parts_, context, "mlp.up", sizes.hidden, 2 * sizes.inner,
          {.init = weight_init(), .bias = false, .act = Activation::silu_mul, .parts = 2}),
      down_(parts_, context, "mlp.down", sizes.inner, sizes.hidden,
            {.init = residual_init(sizes.layers), .bias = false}),
      cost_(block_cost(sizes, context)) {
  const std::int64_t inner = sizes.inner / context.tensor_size();
  const bool gathers = context.sequence_parallel; // then the linears keep what the weight gradient reads
  middle_ = add_stream("middle", Life::forward_to_input);
  before_silu_ = add_columns("mlp.before_silu", 2 * inner, Life::forward_to_input);
  normed1_ = add_stream("attention.normed", gathers ? Life::forward_to_input : Life::forward_to_weight);
  normed2_ = add_stream("mlp.normed", gathers ? Life::forward_to_input : Life::forward_to_weight);
  after_silu_ = add_columns("mlp.after_silu", inner, Life::forward_to_weight);
  sum_ = add_stream("sum", Life::forward_only);
  dup_ = add_columns("mlp.dup", 2 * inner, Life::input_to_weight);
  if (!gathers) {
    dattention_ = add_stream("attention.dprojection", Life::input_to_weight);
    ddown_ = add_stream("mlp.ddown", Life::input_to_weight);
  }
  recomputed_ = attention_.recomputed_stash();
  for (const int tensor : {normed1_, normed2_, after_silu_}) recomputed_.push_back(tensor);
  if (context.purpose == Purpose::train) list_steps();
  inputs_ = {stream(Life::forward_to_input)};
  outputs_ = {stream()};
}

void Block::list_steps() {
  const auto add = [this](Step kind, RecomputeStep step) {
    kinds_.push_back(kind);
    steps_.push_back(std::move(step));
  };
  const auto with = [](std::vector<int> tensors, const Norm& norm) {
    for (const int statistic : norm.statistics()) tensors.push_back(statistic);
    return tensors;
  };
  add(Step::first_norm, {"attention.norm", with({normed1_}, norm1_), {}});
  add(Step::qkv, attention_.qkv_step(normed1_));
  if (attention_.has_norms()) add(Step::head_norms, attention_.norm_step());
  add(Step::core, attention_.core_step());
  add(Step::projection, {"attention.projection", with({middle_, normed2_}, norm2_), {attention_.heads_out()}});
  add(Step::second_norm, {"mlp.norm", with({normed2_}, norm2_), {middle_}});
  add(Step::up, {"mlp.up", {before_silu_, after_silu_}, {normed2_}});
  add(Step::silu, {"mlp.silu", {after_silu_}, {before_silu_}});
}

void Block::project(const LayerCall& call, Views params, Views in, Views stash) const {
  attention_.project(call, params, view(stash, sum_), stash);
  BiasDropoutAddNorm middle = norm2_.fused(params, stash);
  middle.y = view(stash, middle_);
  middle.normed = view(stash, normed2_);
  middle.x = view(stash, sum_);
  middle.residual = in[0];
  call.kernels.bias_dropout_add_norm(middle, call.op());
}

void Block::run(const LayerCall& call, Step step, Views params, Views in, Views stash) const {
  const TensorView &normed1 = view(stash, normed1_), &normed2 = view(stash, normed2_);
  switch (step) {
    case Step::first_norm:
      return norm1_.forward(call, params, in[0], normed1, stash);
    case Step::qkv:
      return attention_.make_qkv(call, params, normed1, stash);
    case Step::head_norms:
      return attention_.recompute(call, params, stash);
    case Step::core:
      return attention_.attend(call, stash);
    case Step::projection:
      return project(call, params, in, stash);
    case Step::second_norm:
      return norm2_.forward(call, params, view(stash, middle_), normed2, stash);
    case Step::up:
      return up_.forward(call, params, normed2, view(stash, after_silu_), view(stash, before_silu_), stash);
    case Step::silu:
      return call.kernels.act_fwd({Activation::silu_mul, view(stash, after_silu_), view(stash, before_silu_)},
                                  call.op());
  }
}

void Block::forward(const LayerCall& call, Views params, Views in, Views out, Views stash) {
  for (const Step step : {Step::first_norm, Step::qkv, Step::core, Step::projection, Step::up})
    run(call, step, params, in, stash);
  if (call.again) return; // the rest makes only the output
  const TensorView& sum = view(stash, sum_);
  down_.forward(call, params, view(stash, after_silu_), sum, stash);
  call.kernels.add({out[0], sum, view(stash, middle_)}, call.op());
}

void Block::recompute(const LayerCall& call, Views params, Views in, Views stash) {
  for (const Step step : {Step::first_norm, Step::head_norms, Step::second_norm, Step::silu})
    run(call, step, params, in, stash);
}

void Block::backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                           Views grads) {
  const TensorView &dx = din[0], &middle = view(stash, middle_), &dup = view(stash, dup_);
  const TensorView ddown = kept(call, dout[0], ddown_, stash);
  down_.backward_input(call, params, ddown, dup, stash, Activation::silu_mul, view(stash, before_silu_));
  up_.backward_input(call, params, view(stash, normed2_), dup, dx, stash);
  norm2_.backward(call, params, middle, dx, dout[0], dx, stash, grads); // dx is now the gradient of `middle`

  // `middle` is not read after this point: its memory holds the gradient of the first norm's output.
  const TensorView dattention = kept(call, dx, dattention_, stash);
  attention_.backward_input(call, params, view(stash, normed1_), dattention, middle, stash, grads);
  norm1_.backward(call, params, in[0], middle, dx, dx, stash, grads);
}

void Block::backward_weight(const LayerCall& call, Views, Views stash, Views grads) {
  down_.backward_weight(call, view(stash, after_silu_), view_or_empty(stash, ddown_), stash, grads);
  up_.backward_weight(call, view(stash, normed2_), view(stash, dup_), stash, grads);
  attention_.backward_weight(call, view(stash, normed1_), view_or_empty(stash, dattention_), stash, grads);
}

} // namespace

std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index) {
  return std::make_unique<Block>(sizes, context, index);
}

} // namespace triax::model_llama
