// SPDX-License-Identifier: Apache-2.0
// Compares the kernels, run on the host, with the reference in double: on the shared cases, at the limits of the row
// plans, and at every alignment of a view.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "emulated_set.hpp"
#include "support/case_builder.hpp"
#include "support/loaded_kernels.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;
using V = const CaseViews&;
using Use = const UseCall&;

class Emulated : public ::testing::Test {
 protected:
  void expect_near(const OperationCase& one, double tolerance) {
    EXPECT_EQ(compare(forwards_, *host_, reference_.set(), one, tolerance), "") << one.name;
    EXPECT_TRUE(run_case(forwards_, *host_, one, one.dtype) == run_case(backwards_, *host_, one, one.dtype))
        << one.name << ": the order of lanes, rows or items shows";
  }
  /// True if the set supports all calls of a case.
  bool covered(const OperationCase& one) {
    CaseViews views;
    for (const CaseTensor& tensor : one.tensors) {
      const bool f32 = tensor.kind == Kind::statistic;
      const DType type = tensor.kind == Kind::own ? tensor.dtype : f32 ? DType::f32 : one.dtype;
      views.set(tensor.name, TensorView(nullptr, type, tensor.shape));
    }
    bool all = true;
    one.build(views, UseCall([&](const OpCall& call) { all = all && forwards_.supports(call).empty(); }));
    return all;
  }

  LoadedKernels reference_{"kernels-reference"};
  EmulatedSet forwards_{false}, backwards_{true};
  std::unique_ptr<Device> host_ = make_host_device();
};

/// In 16 bits each operation rounds its output.
double tolerance(DType type) {
  return type == DType::f32 ? 1e-5 : type == DType::bf16 ? 4 * 0x1p-8 : 4 * 0x1p-11;
}

TEST_F(Emulated, SharedCasesAgreeWithTheReference) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    int covered_cases = 0;
    for (const OperationCase& one : operation_cases(type)) {
      if (!covered(one)) continue;
      ++covered_cases;
      expect_near(one, tolerance(type));
      const CaseResults aligned = run_case(forwards_, *host_, one, type);
      for (const std::int64_t shift : {1, 3})
        EXPECT_TRUE(aligned == run_case(forwards_, *host_, one, type, shift)) << one.name << ", shifted by " << shift;
    }
    EXPECT_GT(covered_cases, 90);
  }
}

OperationCase norms(DType type, NormKind kind, std::int64_t rows, std::int64_t n) {
  const Shape shape{rows, n};
  const bool layer = kind == NormKind::layer;
  return {text("norms {} {}x{} {}", name_of(type), rows, n, layer),
          type,
          {in("x", shape), in("w", {n}), in("b", {n}), in("dy", shape), in("r", shape), out("y", shape),
           out("dx", shape), statistic_out("mean", {rows}), statistic_out("rstd", {rows}),
           CaseTensor{.name = "dw", .role = Role::in_out, .shape = {n}, .kind = Kind::statistic}},
          [=](V v, Use use) {
            const TensorView none, &bias = layer ? v["b"] : none;
            use(NormFwd{kind, v["y"], v["x"], v["w"], bias, v["mean"], v["rstd"], 1e-5});
            use(NormBwdInput{kind, v["dx"], v["dy"], v["x"], v["w"], v["mean"], v["rstd"], v["r"]});
            use(NormBwdWeight{kind, v["dw"], {}, v["dy"], v["x"], v["mean"], v["rstd"]});
          }};
}

/// Row lengths that end within a pack, lengths at and just above the capacity of a warp or block, and long rows.
constexpr std::int64_t kLengths[] = {1,    5,    31,   32,   255,  256,  512,  520,  1000, 1024,  1025,  1032,
                                     2048, 2049, 2056, 4096, 4100, 4104, 8192, 8193, 8200, 12288, 16384, 16392};

TEST_F(Emulated, NormsOfEveryLength) {
  for (const std::int64_t n : kLengths) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      expect_near(norms(type, NormKind::layer, 3, n), 2 * tolerance(type));
  }
  expect_near(norms(DType::f32, NormKind::layer, 131, 40), 2e-5); // rows are summed in more than one part
  OperationCase rms = norms(DType::f32, NormKind::rms, 70, 1030);
  rms.tensors.erase(rms.tensors.begin() + 7); // an rms norm has no mean output
  rms.build = [](V v, Use use) {
    use(NormFwd{NormKind::rms, v["y"], v["x"], v["w"], {}, {}, v["rstd"], 1e-5});
    use(NormBwdInput{NormKind::rms, v["dx"], v["dy"], v["x"], v["w"], {}, v["rstd"], v["r"]});
    use(NormBwdWeight{NormKind::rms, v["dw"], {}, v["dy"], v["x"], {}, v["rstd"]});
  };
  expect_near(rms, 2e-5);
}

/// column0: first column in the dropout numbering.
OperationCase residuals(DType type, std::int64_t n, std::int64_t column0) {
  const Shape shape{2, 3, n};
  return {text("bias_dropout_add_norm {} {} from {}", name_of(type), n, column0),
          type,
          {in("x", shape), in("b", {n}), in_out("r", shape), out("normed", shape), statistic_out("mean", {6}),
           statistic_out("rstd", {6}), in("w", {n}), in("nb", {n}), out("y", shape), out("d", shape), samples(3)},
          [=](V v, Use use) {
            const Drop drop{.p = 0.25f,
                            .key = kCaseKey,
                            .site = 3,
                            .samples = v["samples"],
                            .row0 = 7,
                            .column0 = column0,
                            .rows = 9,
                            .width = n + column0};
            use(BiasDropoutAddNorm{v["r"], v["normed"], v["mean"], v["rstd"], v["x"], v["b"], v["r"], drop,
                                   NormKind::layer, v["w"], v["nb"], 1e-5});
            use(BiasDropoutAdd{v["y"], v["x"], v["b"], v["r"], drop});
            use(Dropout{v["d"], v["x"], drop});
          }};
}

TEST_F(Emulated, ResidualsOfEveryLength) {
  for (const std::int64_t n : kLengths) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const std::int64_t column0 : {n % 7, std::int64_t{4}})
        expect_near(residuals(type, n, column0), 2 * tolerance(type));
    }
  }
}

OperationCase softmaxes(DType type, std::int64_t keys) {
  const Shape shape{1, 2, 3, keys};
  return {text("softmax {} {}", name_of(type), keys),
          type,
          {in("x", shape), out("y", shape), in("dy", shape), out("dx", shape), statistic_out("lse", {1, 2, 3})},
          [=](V v, Use use) {
            const Mask mask{Mask::Kind::causal, keys / 2, 0, {}};
            use(SoftmaxFwd{v["y"], v["x"], 2.5, mask, v["lse"]});
            use(SoftmaxBwd{v["dx"], v["dy"], v["y"], 2.5});
          }};
}

TEST_F(Emulated, SoftmaxOfEveryLength) {
  for (const std::int64_t keys : kLengths) {
    for (const DType type : {DType::f32, DType::bf16}) expect_near(softmaxes(type, keys), 2 * tolerance(type));
  }
}

TEST_F(Emulated, CrossEntropyOfAVocabulary) {
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
    expect_near(one, tolerance(type));
  }
}

/// Minus infinity is a valid logit, and NaN propagates.
TEST_F(Emulated, CrossEntropyOfLogitsThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits(3 * 700, -infinity);
  logits[650] = 2;
  logits[700 + 300] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::int32_t> targets = {650, 0, 0};
  std::vector<float> max(3), sum(3), target(3);
  std::vector<double> loss(3);
  const auto f32 = [](std::vector<float>& of, Shape shape) { return TensorView(of.data(), DType::f32, shape); };
  const auto stream = host_->make_stream("test");
  forwards_.xent_fused({{loss.data(), DType::f64, {3}},
                        f32(max, {3}),
                        f32(sum, {3}),
                        f32(target, {3}),
                        f32(logits, {3, 700}),
                        {targets.data(), DType::i32, {3}},
                        700},
                       {*stream, {}});
  EXPECT_EQ(max[0], 2);
  EXPECT_EQ(sum[0], 1);
  EXPECT_EQ(loss[0], 0);
  EXPECT_TRUE(std::isnan(sum[1]));
  EXPECT_EQ(max[2], -infinity);
}

TEST_F(Emulated, AnEmbeddingsGradientTakesItsPlacesInOrder) {
  for (const std::int64_t h : {1, 33, 64}) {
    CaseTensor t = own("t", Role::in, DType::i32, {700}, {});
    for (int i = 0; i < 700; ++i) t.values.push_back(i % 3 == 0 ? 4 : (i * i + 7) % 40);
    for (const DType type : {DType::f32, DType::bf16}) {
      const OperationCase one{
          text("embed_bwd {} {}", name_of(type), h),
          type,
          {CaseTensor{.name = "table", .role = Role::in_out, .shape = {40, h}, .kind = Kind::statistic},
           in("dy", {700, h}), t},
          [](V v, Use use) {
            use(EmbedBwd{v["table"], v["dy"], v["t"], 2, 35});
          }};
      expect_near(one, 1e-5);
    }
  }
}

TEST_F(Emulated, SumsOfManyPartsAndColumns) {
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

/// The same values at another address, aligned or not, give the same bits.
TEST_F(Emulated, WhereViewsLieChangesNoBit) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t n : {1024, 1032, 2048, 2056, 4096, 9000, 16392}) {
      for (const OperationCase& one :
           {norms(type, NormKind::layer, 3, n), residuals(type, n, n % 7), residuals(type, n, 4), softmaxes(type, n)}) {
        const CaseResults aligned = run_case(forwards_, *host_, one, type);
        for (const std::int64_t shift : {1, 2, 5, 8, 256})
          EXPECT_TRUE(aligned == run_case(forwards_, *host_, one, type, shift)) << one.name << ", shifted by " << shift;
      }
    }
  }
}

} // namespace
} // namespace triax::kernels_fused
