// Sizes of a real model, against the reference, and the mixed types of a training in 16 bits: data in 16, what is added
// to in f32.
#include "support/gpu_kernels_suite.hpp"

namespace triax::testing {
namespace {

CaseTensor tensor(const char* name, Role role, Shape shape) {
  return {.name = name, .role = role, .shape = shape};
}
CaseTensor f32(const char* name, Role role, Shape shape) {
  return {.name = name, .role = role, .shape = shape, .kind = Kind::statistic};
}

class Large : public OnGpu {
 protected:
  void expect_near(const OperationCase& one, double tolerance) {
    EXPECT_EQ(compare(tested->set(), tested->device(), reference_.set(), one, tolerance), "") << one.name;
  }
  LoadedKernels reference_{"kernels-reference"};
};

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

/// One token again and again: its row is the sum of all, in order.
TEST_F(Large, ATokenThatComesManyTimes) {
  CaseTensor t{.name = "t", .shape = {2000}, .kind = Kind::own, .dtype = DType::i32};
  for (int i = 0; i < 2000; ++i) t.values.push_back(i % 7 == 0 ? 1 : 2);
  for (const std::int64_t h : {1, 255, 257}) {
    expect_near({text("embed_bwd {}", h),
                 DType::f32,
                 {tensor("table", Role::in_out, {5, h}), tensor("dy", Role::in, {2000, h}), t},
                 [](const CaseViews& v, const UseCall& use) {
                   use(EmbedBwd{v["table"], v["dy"], v["t"], 0, 5});
                 }},
                1e-5);
  }
}

/// Products and sums in f32 of 16-bit data: nothing of the accumulator is lost to the data's type.
TEST_F(Large, GradientsInF32OfDataIn16Bits) {
  for (const DType type : {DType::bf16, DType::f16}) {
    const auto name = [&](const char* of) { return text("{}, {}", of, name_of(type)); };
    CaseTensor t{.name = "t", .shape = {70}, .kind = Kind::own, .dtype = DType::i32};
    for (int i = 0; i < 70; ++i) t.values.push_back(i * i % 11);
    expect_near({name("linear_bwd_weight"),
                 type,
                 {tensor("dy", Role::in, {70, 130}), tensor("x", Role::in, {70, 65}),
                  f32("dw", Role::in_out, {130, 65}), f32("db", Role::in_out, {130})},
                 [](const CaseViews& v, const UseCall& use) {
                   use(LinearBwdWeight{v["dw"], v["db"], v["dy"], v["x"]});
                 }},
                1e-5);
    expect_near({name("embed_bwd"),
                 type,
                 {f32("table", Role::in_out, {11, 33}), tensor("dy", Role::in, {70, 33}), t},
                 [](const CaseViews& v, const UseCall& use) {
                   use(EmbedBwd{v["table"], v["dy"], v["t"], 0, 11});
                 }},
                1e-5);
  }
}

} // namespace
} // namespace triax::testing
