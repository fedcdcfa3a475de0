// SPDX-License-Identifier: Apache-2.0
// Sizes of a real model, compared with the formulas.
#include "support/gpu_kernels_suite.hpp"

namespace triax::test {
namespace {

class Large : public AgainstFormulas {};

TEST_F(Large, SumsOverManyRowsAndColumns) {
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{9001, 1025}, {3, 20000}, {40000, 3}}) {
    const auto size = text(" {}x{}", rows, n);
    expect_near({"bias_bwd" + size,
                 DType::f32,
                 {tensor("dy", Role::in, {rows, n}), tensor("db", Role::in_out, {n})},
                 [](const CaseViews& v, const UseCall& use) {
                   use(BiasBwd{v["db"], v["dy"]});
                 }},
                1e-5);
    expect_near({"norm" + size,
                 DType::f32,
                 {tensor("x", Role::in, {rows, n}), tensor("w", Role::in, {n}), tensor("b", Role::in, {n}),
                  tensor("y", Role::out, {rows, n}), f32("mean", Role::out, {rows}), f32("rstd", Role::out, {rows}),
                  tensor("dw", Role::in_out, {n}), tensor("db", Role::in_out, {n})},
                 [](const CaseViews& v, const UseCall& use) {
                   use(NormFwd{NormKind::layer, v["y"], v["x"], v["w"], v["b"], v["mean"], v["rstd"], 1e-5});
                   use(NormBwdWeight{NormKind::layer, v["dw"], v["db"], v["y"], v["x"], v["mean"], v["rstd"]});
                 }},
                2e-5);
  }
}

TEST_F(Large, VocabularyOfARealModel) {
  const std::int64_t rows = 130, columns = 50304, valid = 50257;
  std::vector<double> targets;
  for (std::int64_t i = 0; i < rows; ++i) targets.push_back(static_cast<double>((i * i * 7919 + 13) % valid));
  CaseTensor t{.name = "t", .shape = {rows}, .kind = Kind::own, .dtype = DType::i32};
  t.values = targets;
  const CaseTensor loss{.name = "loss", .role = Role::out, .shape = {2}, .kind = Kind::own, .dtype = DType::f64};
  expect_near({"xent",
               DType::f32,
               {tensor("logits", Role::in, {rows, columns}), t, loss, f32("max", Role::out, {rows}),
                f32("sum", Role::out, {rows}), f32("target", Role::out, {rows})},
               [=](const CaseViews& v, const UseCall& use) {
                 use(XentFused{v["loss"], v["max"], v["sum"], v["target"], v["logits"], v["t"], valid});
               }},
              1e-5);
  expect_near({"embed_bwd",
               DType::f32,
               {tensor("table", Role::in_out, {valid, 300}), tensor("dy", Role::in, {rows, 300}), t},
               [=](const CaseViews& v, const UseCall& use) {
                 use(EmbedBwd{v["table"], v["dy"], v["t"], 0, valid});
               }},
              1e-5);
}

/// A thread rotates a pair of all rows of a position, of some, and of one.
TEST_F(Large, RotaryPositionsOfManyRows) {
  for (const Shape& shape : {Shape{530, 2, 3, 512}, Shape{300, 2, 4, 256}, Shape{2, 3, 5, 64}}) {
    expect_near({text("rope of {} positions", shape[0]),
                 DType::f32,
                 {tensor("x", Role::in, shape), tensor("y", Role::out, shape)},
                 [](const CaseViews& v, const UseCall& use) {
                   use(Rope{v["y"], v["x"], 11, 10000, false});
                 }},
                1e-5);
  }
}

} // namespace
} // namespace triax::test
