// SPDX-License-Identifier: Apache-2.0
#include "bench/gpt_operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "triax/text.hpp"

namespace triax::bench {

namespace {

constexpr const char* kGptOperations[] = {"linear_fwd/qkv",
                                          "linear_bwd_input/qkv",
                                          "linear_bwd_weight/qkv",
                                          "linear_fwd/projection",
                                          "linear_bwd_input/projection",
                                          "linear_bwd_weight/projection",
                                          "linear_fwd/up",
                                          "linear_bwd_input/up",
                                          "linear_bwd_weight/up",
                                          "act_bwd/up",
                                          "linear_fwd/down",
                                          "linear_bwd_input/down",
                                          "linear_bwd_weight/down",
                                          "linear_bwd_input_gelu/down",
                                          "attention_fwd/plain",
                                          "attention_bwd/plain",
                                          "attention_fwd/dropout",
                                          "attention_bwd/dropout",
                                          "norm_fwd",
                                          "norm_bwd_input",
                                          "norm_bwd_weight",
                                          "bias_dropout_add",
                                          "bias_dropout_add_norm",
                                          "bias_bwd",
                                          "add",
                                          "embed_fwd",
                                          "embed_bwd",
                                          "xent_fused",
                                          "xent_bwd",
                                          "adamw",
                                          "multi_adamw",
                                          "sum_squares"};

bool is_wanted(const std::string& name, const std::vector<std::string>& names) {
  return names.empty() || std::ranges::any_of(names, [&](const std::string& wanted) {
           return name == wanted || name.starts_with(wanted + "/");
         });
}

} // namespace

std::vector<std::string> gpt_operation_names() {
  return {std::begin(kGptOperations), std::end(kGptOperations)};
}

double buffer_bytes(const GptShapes& shapes, DType dtype, const std::vector<std::string>& names) {
  const auto size = [](std::int64_t of) { return static_cast<double>(of); };
  const double h = size(shapes.hidden), vocab = size(shapes.vocab), rows = size(shapes.sequence) * size(shapes.micro);
  const double element = size(static_cast<std::int64_t>(bytes_of(dtype))), single = 4;
  const auto any_of = [&](std::initializer_list<const char*> cases) {
    return std::ranges::any_of(cases, [&](const char* name) { return is_wanted(name, names); });
  };
  // attention: qkv and its gradient are three of 3 h, the outputs three of h; norms and element-wise: eight streams
  double bytes = element * rows * (3 * 3 * h + 3 * h + 8 * h);
  const auto add_linear = [&](double in, double out, bool has_activation) {
    bytes += element * (rows * (2 * (in + out) + (has_activation ? out : 0)) + in * out) + single * in * out;
  };
  const auto is_linear = [&](const std::string& name) {
    return is_wanted("linear_fwd/" + name, names) || is_wanted("linear_bwd_input/" + name, names) ||
           is_wanted("linear_bwd_weight/" + name, names) || is_wanted("act_bwd/" + name, names);
  };
  if (is_linear("qkv")) add_linear(h, 3 * h, false);
  if (is_linear("projection")) add_linear(h, h, false);
  if (is_linear("up")) add_linear(h, 4 * h, true);
  if (is_linear("down")) add_linear(4 * h, h, false);
  if (any_of({"linear_bwd_input_gelu/down"})) bytes += element * (rows * (h + 2 * 4 * h) + 4 * h * h);
  if (any_of({"bias_bwd"})) bytes += element * rows * 4 * h;
  if (any_of({"embed_fwd", "embed_bwd"})) bytes += element * (2 * rows + vocab) * h + single * vocab * h;
  if (any_of({"xent_fused", "xent_bwd"})) bytes += element * rows * vocab;
  // the parameters of a block and those of qkv: parameter, gradient and two moments, and a working copy
  if (any_of({"adamw", "multi_adamw", "sum_squares"}))
    bytes += (4 * single + (dtype == DType::f32 ? 0 : element)) * (12 + 3) * h * h;
  return bytes;
}

GptOperations::GptOperations(KernelSide& side, const GptShapes& shapes, DType dtype,
                             const std::vector<std::string>& names)
    : side_(side), shapes_(shapes), dtype_(dtype), names_(names) {
  const std::int64_t h = shapes_.hidden;
  linear("qkv", h, 3 * h, Activation::none);
  linear("projection", h, h, Activation::none);
  linear("up", h, 4 * h, Activation::gelu_tanh);
  linear("down", 4 * h, h, Activation::none);
  linear_before_gelu("down", 4 * h, h);
  attention();
  norms();
  elementwise();
  embedding();
  cross_entropy();
  optimizer();
}

bool GptOperations::wants(const std::string& name) const {
  return is_wanted(name, names_);
}

template <class Args>
void GptOperations::add(const std::string& name, const Args& args, std::vector<TensorView> outputs) {
  if (!wants(name)) return;
  const auto held = std::make_shared<const Args>(args);
  arguments_.push_back(held);
  cases_.push_back({name, call_of(*held), std::move(outputs)});
}

void GptOperations::linear(const std::string& name, std::int64_t in, std::int64_t out, Activation act) {
  if (std::ranges::none_of(std::array{"linear_fwd/", "linear_bwd_input/", "linear_bwd_weight/", "act_bwd/"},
                           [&](const char* kind) { return wants(kind + name); }))
    return;
  const bool acts = act != Activation::none;
  const TensorView x = data({rows(), in}), y = data({rows(), out}), dy = data({rows(), out}), dx = data({rows(), in});
  const TensorView w = data({out, in}), bias = data({out}), z = acts ? data({rows(), out}) : TensorView{};
  add("linear_fwd/" + name, LinearFwd{y, z, x, w, bias, act}, acts ? std::vector{y, z} : std::vector{y});
  add("linear_bwd_input/" + name, LinearBwdInput{dx, dy, w}, {dx});
  const TensorView dw = single({out, in}), db = single({out});
  add("linear_bwd_weight/" + name, LinearBwdWeight{dw, db, dy, x}, {dw, db});
  if (acts) add("act_bwd/" + name, ActBwd{act, y, dy, z}, {y});
}

void GptOperations::linear_before_gelu(const std::string& name, std::int64_t in, std::int64_t out) {
  if (!wants("linear_bwd_input_gelu/" + name)) return;
  const TensorView dy = data({rows(), out}), w = data({out, in}), z = data({rows(), in}), dz = data({rows(), in});
  add("linear_bwd_input_gelu/" + name, LinearBwdInput{dz, dy, w, z, Activation::gelu_tanh}, {dz});
}

Drop GptOperations::drop() {
  Drop out;
  out.p = static_cast<float>(shapes_.dropout);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(shapes_.micro));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int64_t>(i);
  out.samples = side_.tensor(samples, {shapes_.micro}, DType::i64);
  out.rows = shapes_.sequence;
  out.width = shapes_.hidden;
  return out;
}

void GptOperations::attention() {
  const std::int64_t s = shapes_.sequence, b = shapes_.micro, a = shapes_.heads, d = shapes_.hidden / a;
  const auto parts = [d](const TensorView& qkv) {
    return std::array{qkv.slice(3, 0, d), qkv.slice(3, d, 2 * d), qkv.slice(3, 2 * d, 3 * d)};
  };
  const TensorView dqkv = data({s, b, a, 3 * d});
  const auto x = parts(data({s, b, a, 3 * d})), dx = parts(dqkv);
  // The backward has its own statistics, so that its inputs do not depend on which operations run.
  const TensorView o = data({s, b, a, d}), dout = data({s, b, a, d}), lse = single({b, a, s}, 8);
  const TensorView y = data({s, b, a, d}), own_lse = single({b, a, s}, 8);
  const Mask causal{Mask::Kind::causal, 0, 0, {}};
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Drop dropped = drop();
  dropped.width = s;
  for (const bool drops : {false, true}) {
    const Drop with = drops ? dropped : Drop{};
    const char* name = drops ? "dropout" : "plain";
    add(text("attention_fwd/{}", name), AttentionFwd{y, own_lse, x[0], x[1], x[2], scale, causal, with}, {y, own_lse});
    add(text("attention_bwd/{}", name),
        AttentionBwd{dx[0], dx[1], dx[2], dout, x[0], x[1], x[2], o, lse, scale, causal, with}, {dqkv});
  }
}

void GptOperations::norms() {
  const std::int64_t h = shapes_.hidden;
  const TensorView x = data(stream()), y = data(stream()), dy = data(stream()), weight = data({h}), bias = data({h});
  const TensorView mean = single({rows()}), rstd = single({rows()}, 1), own_mean = single({rows()}),
                   own_rstd = single({rows()}, 1);
  add("norm_fwd", NormFwd{NormKind::layer, y, x, weight, bias, own_mean, own_rstd}, {y, own_mean, own_rstd});
  add("norm_bwd_input", NormBwdInput{NormKind::layer, y, dy, x, weight, mean, rstd, data(stream())}, {y});
  const TensorView dweight = single({h}), dbias = single({h});
  add("norm_bwd_weight", NormBwdWeight{NormKind::layer, dweight, dbias, dy, x, mean, rstd}, {dweight, dbias});
}

void GptOperations::elementwise() {
  const std::int64_t h = shapes_.hidden;
  const TensorView x = data(stream()), y = data(stream()), residual = data(stream()), bias = data({h});
  add("bias_dropout_add", BiasDropoutAdd{y, x, bias, residual, drop()}, {y});
  const TensorView normed = data(stream()), mean = single({rows()}), rstd = single({rows()});
  add("bias_dropout_add_norm",
      BiasDropoutAddNorm{y, normed, mean, rstd, x, bias, residual, drop(), NormKind::layer, data({h}), data({h})},
      {y, normed, mean, rstd});
  if (wants("bias_bwd")) {
    const TensorView dbias = single({4 * h});
    add("bias_bwd", BiasBwd{dbias, data({rows(), 4 * h})}, {dbias});
  }
  add("add", Add{y, x, residual}, {y});
}

void GptOperations::embedding() {
  if (!wants("embed_fwd") && !wants("embed_bwd")) return;
  const std::int64_t v = shapes_.vocab;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(v));
  const TensorView ids = side_.tensor(tokens, {shapes_.sequence, shapes_.micro}, DType::i32);
  const TensorView y = data(stream()), table = data({v, shapes_.hidden}), gradient = single({v, shapes_.hidden});
  add("embed_fwd", EmbedFwd{y, table, ids, 0, v}, {y});
  add("embed_bwd", EmbedBwd{gradient, data(stream()), ids, 0, v}, {gradient});
}

void GptOperations::cross_entropy() {
  if (!wants("xent_fused") && !wants("xent_bwd")) return;
  const std::int64_t v = shapes_.vocab;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(v));
  const TensorView targets = side_.tensor(tokens, {rows()}, DType::i32), logits = data({rows(), v});
  const TensorView max = single({rows()}), sums = single({rows()}, 1), own = single({rows()});
  const TensorView own_max = single({rows()}), own_sums = single({rows()}, 1);
  const TensorView loss = side_.tensor(Shape{shapes_.micro}, 0, DType::f64);
  add("xent_fused", XentFused{loss, own_max, own_sums, own, logits, targets, v}, {loss, own_max, own_sums, own});
  add("xent_bwd", XentBwd{logits, max, sums, targets, 0, v, 1e-6, nullptr}, {logits});
}

/// The parameters of one block, as the optimizer gets them.
void GptOperations::optimizer() {
  if (!wants("adamw") && !wants("multi_adamw") && !wants("sum_squares")) return;
  const std::int64_t h = shapes_.hidden;
  const StepScalars scalars{.lr = 1e-6f, .step = 10};
  const auto* on_device = static_cast<const StepScalars*>(side_.block(&scalars, sizeof scalars));
  const auto shard = [&](const Shape& flat) {
    return AdamW{
        single(flat), single(flat), single(flat), single(flat), dtype_ == DType::f32 ? TensorView{} : data(flat),
        0.9,          0.95,         1e-8,         0.1,          on_device};
  };
  for (const Shape& shape : {Shape{3 * h, h}, Shape{3 * h}, Shape{h, h}, Shape{h}, Shape{4 * h, h}, Shape{4 * h},
                             Shape{h, 4 * h}, Shape{h}, Shape{h}, Shape{h}, Shape{h}, Shape{h}}) {
    shards_.push_back(shard({shape.elements()}));
  }
  const auto outputs = [](const AdamW& of) {
    std::vector<TensorView> out = {of.master, of.m, of.v};
    if (!of.working.empty()) out.push_back(of.working);
    return out;
  };
  const AdamW alone = shard({3 * h * h}); // not one of the shards: each call changes its state
  add("adamw", alone, outputs(alone));
  add("multi_adamw", MultiAdamW{shards_}, outputs(shards_.front()));
  const TensorView sum = side_.tensor(Shape{1}, 0, DType::f64);
  add("sum_squares", SumSquares{sum, alone.gradient}, {sum});
}

} // namespace triax::bench
