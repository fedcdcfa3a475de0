// SPDX-License-Identifier: Apache-2.0
// Row kernels compared with the formulas in double, at the limits of the row mappings and at every alignment of a
// view.
#include "support/gpu_kernels_suite.hpp"
#include "support/operation_cases.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;
using V = const CaseViews&;
using Use = const UseCall&;

class Rows : public AgainstFormulas {};

/// In 16 bits each operation rounds its output.
double tolerance(DType type) {
  return type == DType::f32 ? 1e-5 : type == DType::bf16 ? 4 * 0x1p-8 : 4 * 0x1p-11;
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

/// Row lengths that end within a vector, lengths at and just above the capacity of a warp or block, and long rows.
constexpr std::int64_t kLengths[] = {1,    5,    31,   32,   255,  256,  512,  520,  768,  1000,  1024,  1025, 1032,
                                     2048, 2049, 2056, 4096, 4100, 4104, 8192, 8193, 8200, 12288, 16384, 16392};

TEST_F(Rows, NormsOfEveryLength) {
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

TEST_F(Rows, ResidualsOfEveryLength) {
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

TEST_F(Rows, SoftmaxOfEveryLength) {
  for (const std::int64_t keys : kLengths) {
    for (const DType type : {DType::f32, DType::bf16}) expect_near(softmaxes(type, keys), 2 * tolerance(type));
  }
}

/// Tokens 3 to 9 are in the table, whose last row is padding. The sum has `n` elements in each row, too.
OperationCase lookups(DType type, std::int64_t n) {
  const std::vector<double> tokens = {3, 9, 2, 5, 9, 10, 0, 4};
  return {text("embed_fwd and add {} {}", name_of(type), n),
          type,
          {in("table", {8, n}), own("t", Role::in, DType::i32, {4, 2}, tokens), in("x", {4, 2, n}), out("y", {4, 2, n}),
           out("sum", {4, 2, n})},
          [](V v, Use use) {
            use(EmbedFwd{v["y"], v["table"], v["t"], 3, 7});
            use(Add{v["sum"], v["x"], v["y"]});
          }};
}

TEST_F(Rows, LookupsAndSumsOfEveryLength) {
  for (const std::int64_t n : kLengths) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) expect_near(lookups(type, n), tolerance(type));
  }
}

OperationCase gates(DType type, std::int64_t n) {
  const Shape wide{3, 2, 2 * n}, narrow{3, 2, n};
  return {text("silu_mul {} {}", name_of(type), n),
          type,
          {in("x", wide), out("y", narrow), in("dy", narrow), out("dx", wide)},
          [](V v, Use use) {
            use(ActFwd{Activation::silu_mul, v["y"], v["x"]});
            use(ActBwd{Activation::silu_mul, v["dx"], v["dy"], v["x"]});
          }};
}

TEST_F(Rows, GatesOfEveryLength) {
  for (const std::int64_t n : kLengths) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) expect_near(gates(type, n), tolerance(type));
  }
}

/// The same values at another address, aligned or not, give the same bits.
TEST_F(Rows, WhereViewsLieChangesNoBit) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t n : {768, 1024, 1032, 2048, 2056, 4096, 9000, 16392}) {
      for (const OperationCase& one : {norms(type, NormKind::layer, 3, n), residuals(type, n, n % 7),
                                       residuals(type, n, 4), softmaxes(type, n), lookups(type, n), gates(type, n)}) {
        const CaseResults aligned = run_case(tested->set(), tested->device(), one, type);
        for (const std::int64_t shift : {1, 2, 5, 8, 256})
          EXPECT_TRUE(aligned == run_case(tested->set(), tested->device(), one, type, shift))
              << one.name << ", shifted by " << shift;
      }
    }
  }
}

} // namespace
} // namespace triax::kernels_fused
