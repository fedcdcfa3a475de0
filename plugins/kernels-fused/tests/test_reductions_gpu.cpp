// SPDX-License-Identifier: Apache-2.0
// Cross-entropy, gradients of embeddings and sums compared with the formulas in double; scratch.
#include <cmath>
#include <limits>

#include "support/gpu_kernels_suite.hpp"
#include "support/operation_cases.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;
using V = const CaseViews&;
using Use = const UseCall&;

class Reductions : public AgainstFormulas {};

TEST_F(Reductions, CrossEntropyOfAVocabulary) {
  const std::int64_t rows = 6, columns = 50304, valid = 50257;
  for (const DType type : {DType::f32, DType::bf16}) {
    CaseTensor logits = in_out("logits", {rows, columns});
    logits.low = -40; // the running maximum keeps increasing
    logits.high = 40;
    const OperationCase one{
        text("xent {}", name_of(type)),
        type,
        {logits, own("t", Role::in, DType::i32, {rows}, tokens(rows, valid)), own("loss", Role::out, DType::f64, {2}),
         statistic_out("max", {rows}), statistic_out("sum", {rows}), statistic_out("target", {rows})},
        [=](V v, Use use) {
          use(XentFused{v["loss"], v["max"], v["sum"], v["target"], v["logits"], v["t"], valid});
          use(XentBwd{v["logits"], v["max"], v["sum"], v["t"], 0, valid, 0.5, nullptr});
        }};
    expect_near(one, type == DType::f32 ? 1e-5 : 4 * 0x1p-8);
  }
}

/// Minus infinity is a valid logit, and NaN propagates.
TEST_F(Reductions, CrossEntropyOfLogitsThatAreNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CaseTensor logits = in("logits", {3, 700});
  logits.values.assign(3 * 700, -kInfinity);
  logits.values[650] = 2;
  logits.values[700 + 300] = std::numeric_limits<double>::quiet_NaN();
  const OperationCase one{
      "xent of infinities",
      DType::f32,
      {logits, own("t", Role::in, DType::i32, {3}, {650, 0, 0}), own("loss", Role::out, DType::f64, {3}),
       statistic_out("max", {3}), statistic_out("sum", {3}), statistic_out("target", {3})},
      [](V v, Use use) {
        use(XentFused{v["loss"], v["max"], v["sum"], v["target"], v["logits"], v["t"], 700});
      }};
  const CaseResults got = run_case(tested->set(), tested->device(), one, DType::f32);
  EXPECT_EQ(got.at("max")[0], 2);
  EXPECT_EQ(got.at("sum")[0], 1);
  EXPECT_EQ(got.at("loss")[0], 0);
  EXPECT_TRUE(std::isnan(got.at("sum")[1]));
  EXPECT_EQ(got.at("max")[2], -kInfinity);
}

TEST_F(Reductions, EmbeddingGradientsAgree) {
  for (const std::int64_t h : {1, 33, 36, 64}) { // 36: whole vectors of f32, and not of 16 bits
    CaseTensor t = own("t", Role::in, DType::i32, {700}, {});
    for (int i = 0; i < 700; ++i) t.values.push_back(i % 3 == 0 ? 4 : (i * i + 7) % 40);
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const OperationCase one{
          text("embed_bwd {} {}", name_of(type), h),
          type,
          {CaseTensor{.name = "table", .role = Role::in_out, .shape = {40, h}, .kind = Kind::statistic},
           in("dy", {700, h}), t},
          [](V v, Use use) {
            use(EmbedBwd{v["table"], v["dy"], v["t"], 2, 35});
          }};
      expect_near(one, 1e-5);
      const CaseResults aligned = run_case(tested->set(), tested->device(), one, type);
      for (const std::int64_t shift : {1, 2})
        EXPECT_TRUE(aligned == run_case(tested->set(), tested->device(), one, type, shift))
            << one.name << ", shifted by " << shift;
    }
  }
}

/// In f32, (1 + 1) + 2^24 = 2^24 + 2, and 1 + 2^24 = 2^24 in any other order. In one tile, in two, and in more runs
/// than one merge takes.
TEST_F(Reductions, EmbeddingGradientsAreAddedInRowOrder) {
  for (const std::int64_t count : {3, 2050, 16'400}) {
    CaseTensor table{.name = "table", .role = Role::in_out, .shape = {1, 1}, .kind = Kind::statistic},
        dy = in("dy", {count, 1});
    table.values = {0};
    dy.values.assign(static_cast<std::size_t>(count), 0);
    dy.values[0] = dy.values[1] = 1;
    dy.values.back() = 0x1p24;
    const std::vector<double> zeros(static_cast<std::size_t>(count), 0);
    const OperationCase one{"embed_bwd in order",
                            DType::f32,
                            {table, dy, own("t", Role::in, DType::i32, {count}, zeros)},
                            [](V v, Use use) {
                              use(EmbedBwd{v["table"], v["dy"], v["t"], 0, 1});
                            }};
    EXPECT_EQ(run_case(tested->set(), tested->device(), one, DType::f32).at("table")[0], 0x1p24 + 2) << count;
  }
}

/// Tokens before the table, which may be negative, and after it are not added.
TEST_F(Reductions, EmbeddingGradientsOfManyTokensAgree) {
  for (const std::int64_t count : {2048, 2049, 16'385}) {
    CaseTensor t = own("t", Role::in, DType::i32, {count}, {});
    for (std::int64_t i = 0; i < count; ++i) t.values.push_back(static_cast<double>(i * i * 7919 % 509 - 100));
    expect_near({text("embed_bwd of {} tokens", count),
                 DType::f32,
                 {CaseTensor{.name = "table", .role = Role::in_out, .shape = {300, 2}, .kind = Kind::statistic},
                  in("dy", {count, 2}), t},
                 [](V v, Use use) {
                   use(EmbedBwd{v["table"], v["dy"], v["t"], 0, 300});
                 }},
                1e-4); // a token occurs up to 100 times
  }
}

TEST_F(Reductions, SumsOfManyPartsAndColumns) {
  expect_near({"sum_squares",
               DType::bf16,
               {in("x", {300'001}), own("out", Role::out, DType::f64, {1})},
               [](V v, Use use) {
                 use(SumSquares{v["out"], v["x"]});
               }},
              1e-9);
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{5000, 7}, {65, 1025}, {300, 260}}) {
    expect_near({text("bias_bwd {}x{}", rows, n),
                 DType::f32,
                 {in("dy", {rows, n}), in_out("db", {n})},
                 [](V v, Use use) {
                   use(BiasBwd{v["db"], v["dy"]});
                 }},
                1e-5);
  }
}

/// A function of the shape alone, so that sums are split alike everywhere.
TEST_F(Reductions, ScratchIsThatOfTheParts) {
  const auto view = [](Shape shape, DType type = DType::f32) { return TensorView(nullptr, type, shape); };
  const auto bytes = [&](const auto& args) { return tested->set().scratch_bytes(call_of(args)); };
  const auto of_bias = [&](std::int64_t rows) { return bytes(BiasBwd{view({33}), view({rows, 33})}); };
  EXPECT_EQ(of_bias(64), 33 * sizeof(float));
  EXPECT_EQ(of_bias(65), 2 * 33 * sizeof(float));
  EXPECT_EQ(of_bias(1 << 20), 64 * 33 * sizeof(float));
  const auto of_squares = [&](std::int64_t count, DType type) {
    return bytes(SumSquares{view({1}, DType::f64), view({count}, type)});
  };
  EXPECT_EQ(of_squares(0, DType::f32), 0);
  EXPECT_EQ(of_squares(8 * 1024, DType::f32), sizeof(double));
  EXPECT_EQ(of_squares(8 * 1024 + 1, DType::bf16), 2 * sizeof(double));
  EXPECT_EQ(of_squares(1024 * 1024, DType::bf16), 128 * sizeof(double));
  EXPECT_EQ(of_squares(std::int64_t{1} << 40, DType::f32), 2048 * sizeof(double));
  EXPECT_EQ(of_squares(8 * 1024 + 1, DType::f64), 2 * sizeof(double)) << "also of types that supports() refuses";
  const auto of_tokens = [&](std::int64_t count) {
    return bytes(EmbedBwd{view({9, 4}), view({count, 4}), view({count}, DType::i32), 0, 9});
  };
  EXPECT_EQ(of_tokens(7), 7 * sizeof(std::uint64_t));
  EXPECT_EQ(of_tokens(2048), 2048 * sizeof(std::uint64_t));
  EXPECT_EQ(of_tokens(2049), 2 * 2049 * sizeof(std::uint64_t)); // to merge sorted tiles
}

/// A sort key has 32 bits for the row of a gradient.
TEST_F(Reductions, EmbeddingGradientsOfTooManyTokensAreRefused) {
  const auto refusals = [&](std::int64_t tokens) {
    const TensorView table(nullptr, DType::f32, {9, 1}), dy(nullptr, DType::f32, {tokens, 1}),
        t(nullptr, DType::i32, {tokens});
    return tested->set().supports(call_of(EmbedBwd{table, dy, t, 0, 9}));
  };
  EXPECT_TRUE(refusals(0xFFFFFFFF).empty());
  const Refusals refused = refusals(std::int64_t{1} << 32);
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused.front().message,
            "the gradient of an embedding of 4294967296 tokens: at most 4294967295 can be sorted");
}

} // namespace
} // namespace triax::kernels_fused
