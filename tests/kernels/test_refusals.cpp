// SPDX-License-Identifier: Apache-2.0
// Every refusal of an operation's checks, by its text.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/kit.hpp"
#include "triax/kernels.hpp"

namespace triax::test {
namespace {

TensorView of(DType type, const Shape& shape) {
  return {nullptr, type, shape};
}
/// A view with two elements between rows.
TensorView strided(const Shape& shape) {
  return f32({shape[0], shape[1] + 2}).slice(1, 0, shape[1]);
}

struct Refusal {
  std::function<OpCall()> call;
  std::string text;
};
template <class Args>
Refusal refusal(const Args& args, std::string text) {
  return {[args] { return call_of(args); }, std::move(text)};
}

void expect_refused(const std::vector<Refusal>& refusals) {
  for (const Refusal& one : refusals) {
    try {
      one.call();
      ADD_FAILURE() << "not refused: " << one.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), one.text);
    }
  }
}

const DType kHalf = DType::bf16;

TEST(Refusals, Gemm) {
  const auto a = f32({4, 8}), b = f32({8, 3}), d = f32({4, 3});
  call_of(Gemm{.d = d, .a = a, .b = b});
  call_of(Gemm{.d = d, .a = of(kHalf, {4, 8}), .b = of(kHalf, {8, 3})});
  const TensorView column(nullptr, DType::f32, {4, 8}, {1, 4});
  expect_refused({
      refusal(Gemm{.d = d, .b = b}, "gemm: a is missing"),
      refusal(Gemm{.d = d, .a = of(DType::i32, {4, 8}), .b = b}, "gemm: a i32[4, 8] must be of a floating type"),
      refusal(Gemm{.d = d, .a = f32({8}), .b = b}, "gemm: a f32[8] must have at least two dimensions"),
      refusal(Gemm{.d = d, .a = column, .b = b}, "gemm: a f32[4, 8] has the last stride 4; it must be 1"),
      refusal(Gemm{.d = d, .a = a, .b = of(DType::f64, {8, 3})}, "gemm: a f32[4, 8] and b f64[8, 3] differ in type"),
      refusal(Gemm{.d = of(DType::f64, {4, 3}), .a = a, .b = b}, "gemm: d f64[4, 3] must have the type of a f32[4, 8]"),
      refusal(Gemm{.d = of(DType::f64, {4, 3}), .a = of(kHalf, {4, 8}), .b = of(kHalf, {8, 3})},
              "gemm: d f64[4, 3] must be f32 or have the type of a bf16[4, 8]"),
      refusal(Gemm{.d = d, .a = f32({2, 4, 8}), .b = b},
              "gemm: a f32[2, 4, 8] and b f32[8, 3] differ in batch dimensions"),
      refusal(Gemm{.d = f32({2, 4, 3}), .a = f32({2, 4, 8}), .b = f32({3, 8, 3})},
              "gemm: a f32[2, 4, 8] and b f32[3, 8, 3] differ in batch dimensions"),
      refusal(Gemm{.d = d, .a = a, .b = f32({9, 3})}, "gemm: a f32[4, 8] and b f32[9, 3] do not fit: K is 8 and 9"),
      refusal(Gemm{.d = d, .a = a, .b = b, .transpose_a = true, .transpose_b = true},
              "gemm: a f32[4, 8] transposed and b f32[8, 3] transposed do not fit: K is 4 and 3"),
      refusal(Gemm{.d = f32({3, 4}), .a = a, .b = b},
              "gemm: d f32[3, 4] does not fit: a f32[4, 8] and b f32[8, 3] make [4, 3]"),
  });
}

TEST(Refusals, Elementwise) {
  const auto x = f32({4, 6}), n = f32({6});
  expect_refused({
      refusal(BiasAdd{.y = x, .bias = n}, "bias_add: x is missing"),
      refusal(BiasAdd{x, strided({4, 6}), n}, "bias_add: x f32[4, 6] is strided; it must be contiguous"),
      refusal(BiasAdd{f32({4, 5}), x, n}, "bias_add: y f32[4, 5] does not fit x f32[4, 6]"),
      refusal(BiasAdd{x, x, f32({5})},
              "bias_add: bias f32[5] has 5 elements; it needs 6, the last dimension of x f32[4, 6]"),
      refusal(BiasAdd{x, x, of(DType::f64, {6})}, "bias_add: bias f64[6] and x f32[4, 6] differ in type"),
      refusal(BiasBwd{of(DType::f64, {6}), x}, "bias_bwd: dbias f64[6] must have the type of dy f32[4, 6]"),
      refusal(Add{x, x, f32({6, 4})}, "add: b f32[6, 4] does not fit a f32[4, 6]"),
      refusal(Add{x, x, f32({2, 2, 6})}, "add: b f32[2, 2, 6] and a f32[4, 6] differ in shape"),
      refusal(Add{x, of(DType::u8, {4, 6}), x}, "add: a u8[4, 6] must be of a floating type"),
      refusal(ActFwd{Activation::none, x, x}, "act_fwd: the activation is missing"),
      refusal(ActFwd{Activation::gelu_tanh, n, x}, "act_fwd: y f32[6] does not fit x f32[4, 6]"),
      refusal(ActFwd{Activation::silu_mul, x, x},
              "act_fwd: y f32[4, 6] does not fit x f32[4, 6]: silu_mul takes rows of 2n to rows of n"),
      refusal(ActBwd{Activation::none, x, x, x}, "act_bwd: the activation is missing"),
      refusal(ActBwd{Activation::silu_mul, x, x, x},
              "act_bwd: dy f32[4, 6] does not fit x f32[4, 6]: silu_mul takes rows of 2n to rows of n"),
      refusal(SumSquares{f32({1}), x}, "sum_squares: out f32[1] must be f64"),
      refusal(SumSquares{of(DType::f64, {2}), x}, "sum_squares: out f64[2] must have one element"),
  });
}

TEST(Refusals, Dropout) {
  const auto x = f32({6, 5}), scores = f32({2, 3, 4, 5});
  const Drop good{.p = 0.1f, .samples = of(DType::i64, {2}), .rows = 4, .width = 5};
  call_of(Dropout{x, x, good});
  call_of(Dropout{scores, scores, good});
  const auto with = [&](auto change) {
    Drop drop = good;
    change(drop);
    return drop;
  };
  expect_refused({
      refusal(Dropout{x, x, with([](Drop& d) { d.p = 1; })}, "dropout: drop.p must be in [0, 1), got 1"),
      refusal(Dropout{x, x, with([](Drop& d) { d.samples = {}; })}, "dropout: drop.samples is missing"),
      refusal(Dropout{x, x, with([](Drop& d) { d.samples = of(DType::i32, {2}); })},
              "dropout: drop.samples i32[2] must be i64"),
      refusal(Dropout{x, x, with([](Drop& d) { d.samples = of(DType::i64, {4}); })},
              "dropout: the 6 rows of x f32[6, 5] are not divisible by the 4 samples of drop.samples"),
      refusal(Dropout{x, x, with([](Drop& d) { d.samples = of(DType::i64, {0}); })},
              "dropout: drop.samples i64[0] must name 1 samples"),
      refusal(Dropout{scores, scores, with([](Drop& d) { d.samples = of(DType::i64, {3}); })},
              "dropout: drop.samples i64[3] must name 2 samples"),
      refusal(Dropout{x, x, with([](Drop& d) { d.row0 = -1; })},
              "dropout: drop.head0 = 0, row0 = -1, column0 = 0: they must not be negative"),
      refusal(Dropout{x, x, with([](Drop& d) { d.row0 = 2; })},
              "dropout: dropout covers rows [2, 5) of a tensor of drop.rows = 4"),
      refusal(Dropout{scores, scores, with([](Drop& d) { d.column0 = 1; })},
              "dropout: dropout covers columns [1, 6) of a tensor of drop.width = 5"),
      refusal(BiasDropoutAdd{scores, scores, {}, scores, {}},
              "bias_dropout_add: x f32[2, 3, 4, 5] must have at most 3 dimensions"),
      refusal(BiasDropoutAdd{x, x, {}, {}, {}}, "bias_dropout_add: residual is missing"),
      refusal(BiasDropoutAdd{x, x, f32({6}), x, {}},
              "bias_dropout_add: bias f32[6] has 6 elements; it needs 5, the last dimension of x f32[6, 5]"),
  });
}

TEST(Refusals, Norms) {
  const auto x = f32({4, 6}), n = f32({6}), rows = f32({4});
  expect_refused({
      refusal(NormFwd{NormKind::layer, x, x, n, n, {}, rows}, "norm_fwd: mean is missing"),
      refusal(NormFwd{NormKind::layer, x, x, n, {}, rows, rows}, "norm_fwd: bias is missing"),
      refusal(NormFwd{NormKind::rms, x, x, n, n, {}, rows},
              "norm_fwd: bias f32[6] is given, but an rms norm does not use it"),
      refusal(NormFwd{NormKind::rms, x, x, n, {}, {}, f32({3})},
              "norm_fwd: rstd f32[3] has 3 elements; it needs 4, the rows of x f32[4, 6]"),
      refusal(NormFwd{NormKind::rms, of(kHalf, {4, 6}), of(kHalf, {4, 6}), of(kHalf, {6}), {}, {}, of(kHalf, {4})},
              "norm_fwd: rstd bf16[4] must be f32"),
      refusal(NormBwdInput{NormKind::layer, x, x, x, n, rows, rows, n},
              "norm_bwd_input: residual f32[6] does not fit x f32[4, 6]"),
      refusal(NormBwdInput{NormKind::layer, x, x, x, f32({4}), rows, rows, {}},
              "norm_bwd_input: weight f32[4] has 4 elements; it needs 6, the last dimension of x f32[4, 6]"),
      refusal(NormBwdWeight{NormKind::rms, n, n, x, x, {}, rows},
              "norm_bwd_weight: dbias f32[6] is given, but an rms norm does not use it"),
      refusal(NormBwdWeight{NormKind::layer, n, {}, f32({3, 6}), x, rows, rows},
              "norm_bwd_weight: dy f32[3, 6] does not fit x f32[4, 6]"),
      refusal(
          BiasDropoutAddNorm{
              .y = x, .normed = f32({4, 5}), .rstd = rows, .x = x, .residual = x, .kind = NormKind::rms, .weight = n},
          "bias_dropout_add_norm: normed f32[4, 5] does not fit x f32[4, 6]"),
  });
}

TEST(Refusals, SoftmaxAndRope) {
  const auto x = f32({2, 3, 4, 5});
  expect_refused({
      refusal(SoftmaxFwd{.y = f32({4, 5}), .x = f32({4, 5})}, "softmax_fwd: x f32[4, 5] must have 4 dimensions"),
      refusal(SoftmaxFwd{.y = f32({2, 3, 4, 6}), .x = x},
              "softmax_fwd: y f32[2, 3, 4, 6] does not fit x f32[2, 3, 4, 5]"),
      refusal(SoftmaxFwd{.y = x, .x = x, .lse = f32({2, 3, 5})},
              "softmax_fwd: lse f32[2, 3, 5] has 30 elements; it needs 24, the rows of x f32[2, 3, 4, 5]"),
      refusal(SoftmaxFwd{.y = x, .x = x, .mask = {Mask::Kind::causal, -1, 0, {}}},
              "softmax_fwd: mask.q0 = -1, k0 = 0: they must not be negative"),
      refusal(SoftmaxFwd{.y = x, .x = x, .mask = {Mask::Kind::causal, 0, 0, of(DType::i32, {3})}},
              "softmax_fwd: mask.lengths i32[3] must have the lengths of 2 samples"),
      refusal(SoftmaxFwd{.y = x, .x = x, .mask = {Mask::Kind::causal, 0, 0, of(DType::i64, {2})}},
              "softmax_fwd: mask.lengths i64[2] must be i32"),
      refusal(SoftmaxBwd{x, x, f32({2, 3, 4, 6})}, "softmax_bwd: dy f32[2, 3, 4, 5] does not fit y f32[2, 3, 4, 6]"),
      refusal(SoftmaxBwd{x, x, x, 1, f32({2, 3, 5})},
              "softmax_bwd: delta f32[2, 3, 5] has 30 elements; it needs 24, the rows of y f32[2, 3, 4, 5]"),
      refusal(SoftmaxFromLse{x, x, {}}, "softmax_from_lse: lse is missing"),
      refusal(SoftmaxFromLse{x, f32({24, 5}), f32({24})}, "softmax_from_lse: x f32[24, 5] must have 4 dimensions"),
      refusal(SoftmaxFromLse{x, x, f32({2, 3})},
              "softmax_from_lse: lse f32[2, 3] has 6 elements; it needs 24, the rows of x f32[2, 3, 4, 5]"),
      refusal(AttentionDelta{f32({3, 4, 2}), x, f32({2, 3, 4, 6})},
              "attention_delta: dout f32[2, 3, 4, 5] and o f32[2, 3, 4, 6] differ in shape"),
      refusal(AttentionDelta{f32({3, 4}), x, x},
              "attention_delta: delta f32[3, 4] has 12 elements; it needs 24, the samples, heads and positions of o "
              "f32[2, 3, 4, 5]"),
      refusal(AttentionMerge{x, of(DType::f64, {3, 4, 2}), x, f32({3, 4, 2})},
              "attention_merge: lse f64[3, 4, 2] must be f32"),
      refusal(AttentionMerge{x, f32({3, 4, 2}), of(DType::bf16, {2, 3, 4, 5}), f32({3, 4, 2})},
              "attention_merge: o_more bf16[2, 3, 4, 5] and o f32[2, 3, 4, 5] differ in type"),
      refusal(AttentionMerge{x, f32({3, 4, 2}), x, {}}, "attention_merge: lse_more is missing"),
      refusal(Rope{.y = x, .x = x},
              "rope: x f32[2, 3, 4, 5] must have an even head size: rotary embeddings rotate pairs"),
      refusal(Rope{.y = f32({2, 3, 4, 8}), .x = f32({2, 3, 4, 6})},
              "rope: y f32[2, 3, 4, 8] and x f32[2, 3, 4, 6] differ in shape"),
      refusal(Rope{.y = f32({2, 3, 4, 6}), .x = f32({2, 3, 4, 6}), .position0 = -1},
              "rope: position0 = -1 must not be negative"),
      refusal(Rope{.y = f32({2, 3, 4, 6}), .x = f32({2, 3, 4, 6}), .base = 0}, "rope: base must be positive, got 0"),
      refusal(Rope{.y = f32({2, 3, 4, 6}), .x = f32({2, 3, 4, 6}), .scaling = {.factor = 0}},
              "rope: scaling.factor must be positive, got 0"),
      refusal(Rope{.y = f32({2, 3, 4, 6}), .x = f32({2, 3, 4, 6}), .scaling = {8, 4, 4, 64}},
              "rope: scaling.low_freq_factor = 4 must be less than scaling.high_freq_factor = 4"),
      refusal(Rope{.y = f32({2, 3, 4, 6}), .x = f32({2, 3, 4, 6}), .scaling = {8, 1, 4, 0}},
              "rope: scaling.original_positions must be positive, got 0"),
  });
}

TEST(Refusals, Linear) {
  const auto x = f32({4, 8}), w = f32({6, 8}), y = f32({4, 6});
  expect_refused({
      refusal(LinearFwd{.y = y, .z = y, .x = x, .w = w},
              "linear_fwd: z f32[4, 6] is given, but there is no activation"),
      refusal(LinearFwd{.y = y, .x = x, .w = w, .act = Activation::gelu_tanh}, "linear_fwd: z is missing"),
      refusal(LinearFwd{.y = y, .z = y, .x = x, .w = w, .act = Activation::silu_mul},
              "linear_fwd: y f32[4, 6] does not fit z f32[4, 6]"),
      refusal(LinearFwd{.y = y, .x = f32({4, 7}), .w = w},
              "linear_fwd: x f32[4, 7] does not fit w f32[6, 8]: a row has 7 elements, not 8"),
      refusal(LinearFwd{.y = f32({4, 5}), .x = x, .w = w},
              "linear_fwd: y f32[4, 5] does not fit w f32[6, 8]: a row has 5 elements, not 6"),
      refusal(LinearFwd{.y = f32({3, 6}), .x = x, .w = w},
              "linear_fwd: x f32[4, 8] and y f32[3, 6] differ in rows: 4 and 3"),
      refusal(LinearFwd{.y = y, .x = x, .w = w, .bias = f32({8})},
              "linear_fwd: bias f32[8] has 8 elements; it needs 6, the last dimension of y f32[4, 6]"),
      refusal(LinearBwdInput{f32({4, 7}), y, w},
              "linear_bwd_input: dx f32[4, 7] does not fit w f32[6, 8]: a row has 7 elements, not 8"),
      refusal(LinearBwdInput{x, y, w, x}, "linear_bwd_input: before f32[4, 8] is given, but there is no activation"),
      refusal(LinearBwdInput{x, y, w, {}, Activation::gelu_tanh}, "linear_bwd_input: before is missing"),
      refusal(LinearBwdInput{x, y, w, f32({4, 16}), Activation::silu_mul},
              "linear_bwd_input: dx f32[4, 8] does not fit w f32[6, 8]: a row has 8 elements, not 16"),
      refusal(LinearBwdInput{x, y, w, f32({4, 16}), Activation::gelu_tanh},
              "linear_bwd_input: before f32[4, 16] does not fit dx f32[4, 8]"),
      refusal(LinearBwdWeight{of(DType::f64, {6, 8}), {}, y, x},
              "linear_bwd_weight: dw f64[6, 8] must have the type of dy f32[4, 6]"),
      refusal(LinearBwdWeight{w, f32({8}), y, x},
              "linear_bwd_weight: dbias f32[8] has 8 elements; it needs 6, the last dimension of dy f32[4, 6]"),
  });
  float memory[32] = {};
  const TensorView place(memory, DType::f32, {4, 8});
  EXPECT_THROW(call_of(LinearBwdInput{place, y, w, place, Activation::gelu_tanh}), Error);
  call_of(LinearBwdWeight{w, f32({6}), of(kHalf, {4, 6}), of(kHalf, {4, 8})}); // gradients of the master type
}

TEST(Refusals, Attention) {
  const auto q = f32({4, 2, 6, 8}), k = f32({5, 2, 3, 8}), lse = f32({2, 6, 4});
  const AttentionFwd good{.o = q, .lse = lse, .q = q, .k = k, .v = k};
  call_of(good);
  const auto with = [&](auto change) {
    AttentionFwd args = good;
    change(args);
    return args;
  };
  const AttentionBwd backward{.dq = q, .dk = k, .dv = k, .dout = q, .q = q, .k = k, .v = k, .o = q, .lse = lse};
  call_of(backward);
  AttentionBwd wrong_dk = backward, no_dout = backward;
  wrong_dk.dk = q;
  no_dout.dout = {};
  const auto k_of = [](const Shape& shape) {
    return [shape](AttentionFwd& args) { args.k = args.v = TensorView(nullptr, DType::f32, shape); };
  };
  expect_refused({
      refusal(with([](AttentionFwd& args) {
                args.q = f32({4, 6, 8});
              }),
              "attention_fwd: q f32[4, 6, 8] must have 4 dimensions"),
      refusal(with([](AttentionFwd& args) {
                args.v = of(DType::f64, {5, 2, 3, 8});
              }),
              "attention_fwd: v f64[5, 2, 3, 8] and q f32[4, 2, 6, 8] differ in type"),
      refusal(with([](AttentionFwd& args) {
                args.v = f32({5, 2, 3, 7});
              }),
              "attention_fwd: v f32[5, 2, 3, 7] and k f32[5, 2, 3, 8] differ in shape"),
      refusal(with([](AttentionFwd& args) {
                args.o = f32({4, 2, 3, 8});
              }),
              "attention_fwd: o f32[4, 2, 3, 8] and q f32[4, 2, 6, 8] differ in shape"),
      refusal(with(k_of({5, 1, 3, 8})),
              "attention_fwd: q f32[4, 2, 6, 8] and k f32[5, 1, 3, 8] differ in samples: 2 and 1"),
      refusal(with(k_of({5, 2, 3, 4})),
              "attention_fwd: q f32[4, 2, 6, 8] and k f32[5, 2, 3, 4] differ in head size: 8 and 4"),
      refusal(with(k_of({5, 2, 4, 8})),
              "attention_fwd: q f32[4, 2, 6, 8] and k f32[5, 2, 4, 8] do not fit: 6 query heads are not a multiple of "
              "4 key heads"),
      refusal(with([](AttentionFwd& args) { args.lse = {}; }), "attention_fwd: lse is missing"),
      refusal(with([](AttentionFwd& args) {
                args.lse = f32({2, 6, 5});
              }),
              "attention_fwd: lse f32[2, 6, 5] has 60 elements; it needs 48, the samples, heads and positions of q "
              "f32[4, 2, 6, 8]"),
      refusal(with([](AttentionFwd& args) {
                args.mask.q0 = 3;
                args.drop = {.p = 0.5f, .samples = of(DType::i64, {2}), .rows = 5, .width = 5};
              }),
              "attention_fwd: dropout covers rows [3, 7) of a tensor of drop.rows = 5"),
      refusal(wrong_dk, "attention_bwd: dk f32[4, 2, 6, 8] and k f32[5, 2, 3, 8] differ in shape"),
      refusal(no_dout, "attention_bwd: dout is missing"),
  });
}

TEST(Refusals, Vocabulary) {
  const auto table = f32({9, 6}), y = f32({4, 2, 6}), tokens = of(DType::i32, {4, 2});
  const auto logits = f32({8, 10}), rows = f32({8}), targets = of(DType::i32, {8}), loss = of(DType::f64, {2});
  expect_refused({
      refusal(EmbedFwd{y, f32({9, 5}), tokens, 0, 9},
              "embed_fwd: table f32[9, 5] and y f32[4, 2, 6] differ in width: 5 and 6"),
      refusal(EmbedFwd{y, table, of(DType::i64, {4, 2}), 0, 9}, "embed_fwd: tokens i64[4, 2] must be i32"),
      refusal(EmbedFwd{y, table, of(DType::i32, {4}), 0, 9},
              "embed_fwd: tokens i32[4] has 4 elements; it needs 8, the rows of y f32[4, 2, 6]"),
      refusal(EmbedFwd{y, table, tokens, 5, 10}, "embed_fwd: tokens [5, 15) do not fit the 9 rows of table f32[9, 6]"),
      refusal(EmbedFwd{y, of(DType::f64, {9, 6}), tokens, 0, 9},
              "embed_fwd: table f64[9, 6] and y f32[4, 2, 6] differ in type"),
      refusal(EmbedBwd{of(DType::f64, {9, 6}), y, tokens, 0, 9},
              "embed_bwd: dtable f64[9, 6] must have the type of dy f32[4, 2, 6]"),
      refusal(XentMax{rows, logits, 11}, "xent_max: valid = 11 is not within the 10 columns of logits f32[8, 10]"),
      refusal(XentMax{f32({7}), logits, 10},
              "xent_max: max f32[7] has 7 elements; it needs 8, the rows of logits f32[8, 10]"),
      refusal(XentSums{rows, rows, logits, rows, targets, -1, 10}, "xent_sums: begin = -1 must not be negative"),
      refusal(XentSums{rows, rows, logits, rows, f32({8}), 0, 10}, "xent_sums: targets f32[8] must be i32"),
      refusal(XentLoss{f32({2}), rows, rows}, "xent_loss: loss f32[2] must be f64"),
      refusal(XentLoss{of(DType::f64, {3}), rows, rows},
              "xent_loss: the 8 rows of sum_exp f32[8] are not divisible by the samples of loss f64[3]"),
      refusal(XentLoss{loss, rows, f32({7})},
              "xent_loss: target_logit f32[7] has 7 elements; it needs 8, the elements of sum_exp f32[8]"),
      refusal(XentLoss{loss, of(kHalf, {8}), rows}, "xent_loss: sum_exp bf16[8] must be f32 or f64"),
      refusal(XentBwd{.logits = logits, .max = rows, .sum_exp = of(DType::f64, {8}), .targets = targets, .valid = 10},
              "xent_bwd: sum_exp f64[8] must be f32"),
      refusal(XentFused{loss, rows, rows, rows, logits, targets, 0},
              "xent_fused: valid = 0: logits f32[8, 10] has no valid column"),
  });
}

TEST(Refusals, StepControl) {
  StepScalars scalars;
  const auto squares = of(DType::f64, {2, 3}), order = of(DType::i32, {6}), losses = of(DType::f64, {4});
  const StepControl good{squares, order, losses, &scalars, 0, {}};
  call_of(good);
  const auto with = [&](auto change) {
    StepControl args = good;
    change(args);
    return args;
  };
  expect_refused({
      refusal(with([](StepControl& args) { args.squares = f32({6}); }), "step_control: squares f32[6] must be f64"),
      refusal(with([](StepControl& args) { args.order = of(DType::i64, {6}); }),
              "step_control: order i64[6] must be i32"),
      refusal(with([](StepControl& args) { args.losses = {}; }), "step_control: losses is missing"),
      refusal(with([](StepControl& args) { args.clip_grad = -1; }),
              "step_control: clip_grad = -1 must not be negative"),
      refusal(with([](StepControl& args) { args.scaling.min = 0; }),
              "step_control: scaling.min must be positive, got 0"),
      refusal(with([](StepControl& args) { args.scaling.backoff = 1; }),
              "step_control: scaling.growth = 2 must be above 1, scaling.backoff = 1 between 0 and 1"),
  });
}

TEST(Refusals, Updates) {
  const auto p = f32({10});
  const AdamW bad_gradient{p, f32({9}), p, p, {}};
  expect_refused({
      refusal(AdamW{of(kHalf, {10}), p, p, p, {}}, "adamw: master bf16[10] must be f32 or f64"),
      refusal(bad_gradient, "adamw: gradient f32[9] has 9 elements; it needs 10, the elements of master f32[10]"),
      refusal(AdamW{p, p, of(DType::f64, {10}), p, {}}, "adamw: m f64[10] and master f32[10] differ in type"),
      refusal(AdamW{p, p, p, p, of(DType::i32, {10})}, "adamw: working i32[10] must be of a floating type"),
      refusal(AdamW{p, p, p, p, {}, 1.0}, "adamw: beta1 must be in [0, 1), got 1"),
      refusal(AdamW{p, p, p, p, {}, 0.9, -0.5}, "adamw: beta2 must be in [0, 1), got -0.5"),
      refusal(AdamW{p, p, p, p, {}, 0.9, 0.9, 0}, "adamw: eps must be positive, got 0"),
      refusal(Sgd{p, p, {}, {}, 0.9}, "sgd: velocity is missing"),
      refusal(Sgd{p, p, p, {}, 1.5}, "sgd: momentum must be in [0, 1), got 1.5"),
      {[=] {
         const AdamW shards[] = {{p, p, p, p, {}}, bad_gradient};
         return call_of(MultiAdamW{shards});
       },
       "multi_adamw: gradient f32[9] has 9 elements; it needs 10, the elements of master f32[10]"},
  });
}

} // namespace
} // namespace triax::test
