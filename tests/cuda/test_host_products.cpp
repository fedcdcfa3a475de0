// SPDX-License-Identifier: Apache-2.0
// Matrix products of the primitives on the host emulator's cuBLAS, which is written from cuBLAS's definition: every
// transposition, batches, strided rows, and the defined results for alpha, beta and empty sums.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/case_builder.hpp"
#include "support/gpu_kernels_suite.hpp"

namespace triax::test {
namespace {

using V = const CaseViews&;
using Use = const UseCall&;

class HostProducts : public AgainstReference {};

struct Sizes {
  std::int64_t m, n, k;
};

/// Batch dimensions before rows and columns.
Shape batched(int dims, std::int64_t rows, std::int64_t columns) {
  if (dims == 0) return {rows, columns};
  if (dims == 1) return {3, rows, columns};
  return {2, 3, rows, columns};
}

TEST_F(HostProducts, OfEveryTranspositionBatchAndStride) {
  for (const auto& [m, n, k] : {Sizes{1, 1, 1}, {1, 6, 3}, {4, 1, 5}, {5, 3, 1}, {4, 7, 9}}) {
    for (int way = 0; way < 4; ++way) {
      const bool ta = way / 2 != 0, tb = way % 2 != 0;
      for (int batch = 0; batch < 3; ++batch) {
        for (const std::int64_t padding : {0, 3}) {
          const Shape a = ta ? batched(batch, k, m) : batched(batch, m, k);
          const Shape b = tb ? batched(batch, n, k) : batched(batch, k, n);
          const auto name = text("{}x{}x{} way {}, {} batch dimensions, padding {}", m, n, k, way, batch, padding);
          CaseTensor d = in_out("d", batched(batch, m, n));
          d.padding = padding;
          expect_near({name,
                       DType::f32,
                       {in("a", a, padding), in("b", b, 2 * padding), d},
                       [=](V v, Use use) {
                         use(Gemm{v["d"], v["a"], v["b"], ta, tb, -0.5, 2});
                       }},
                      1e-5);
        }
      }
    }
  }
}

/// A slice of heads from [s, b, a, d]: the batch stride is smaller than the row stride.
TEST_F(HostProducts, OfHeadsThatLieWithinRows) {
  const OperationCase one{
      "heads",
      DType::f32,
      {in("q", {5, 2, 3, 4}), in("k", {7, 2, 3, 4}), out("scores", {2, 3, 5, 7})},
      [](V v, Use use) {
        const auto heads = [](const TensorView& x) {
          return TensorView(x.data(), x.dtype(), {2, 3, x.size(0), 4}, {x.stride(1), x.stride(2), x.stride(0), 1});
        };
        use(Gemm{.d = v["scores"], .a = heads(v["q"]), .b = heads(v["k"]), .transpose_b = true});
      }};
  expect_near(one, 1e-5);
}

TEST_F(HostProducts, WhereAlphaIsZeroOnlyWhatIsThereCounts) {
  expect_near({"alpha 0",
               DType::f32,
               {in("a", {4, 5}), in("b", {5, 3}), in_out("d", {4, 3})},
               [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .alpha = 0, .beta = 0.5}); }},
              1e-6);
}

/// Outputs are initialised with NaN.
TEST_F(HostProducts, WhereBetaIsZeroWhatWasThereIsNotRead) {
  for (const std::int64_t k : {0, 5}) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      expect_near({text("beta 0, {} terms, {}", k, name_of(type)),
                   type,
                   {in("a", {4, k}), in("b", {k, 3}), out("d", {4, 3}, 2)},
                   [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"]}); }},
                  0x1p-8);
    }
  }
}

TEST_F(HostProducts, OfNothingToSumLeaveBetaTimesWhatWasThere) {
  for (const double beta : {0.5, 1.0, -3.0}) {
    expect_near({text("beta {}", beta),
                 DType::f32,
                 {in("a", {2, 4, 0}), in("b", {2, 0, 3}), in_out("d", {2, 4, 3})},
                 [=](V v, Use use) {
                   use(Gemm{v["d"], v["a"], v["b"], false, false, 2, beta});
                 }},
                1e-6);
  }
}

/// Sums are f32 for all data types: 4096 equal terms, where a bf16 sum would stop growing at 256.
TEST_F(HostProducts, OfHalvesAreSummedInF32) {
  CaseTensor ones = in("a", {1, 4096}), others = in("b", {4096, 2});
  ones.values.assign(4096, 1);
  others.values.assign(8192, 1);
  for (const DType type : {DType::bf16, DType::f16}) {
    expect_near({text("4096 ones in {}", name_of(type)),
                 type,
                 {
                     ones,
                     others,
                     out("d", {1, 2}),
                 },
                 [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"]}); }},
                1e-6);
    CaseTensor wide = in_out("d", {1, 2});
    wide.kind = Kind::statistic;
    expect_near({text("onto f32, {}", name_of(type)),
                 type,
                 {ones, others, wide},
                 [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .beta = 1}); }},
                1e-6);
  }
}

/// With the option, only the factors lose bits.
TEST_F(HostProducts, InTf32FactorsKeepElevenBits) {
  Options options;
  options.set("tf32", true);
  LoadedKernels loose(TRIAX_KERNELS, options, kKernelsFolder);
  const OperationCase one{"tf32", DType::f32, {in("a", {9, 33}), in("b", {33, 6}), out("d", {9, 6})}, [](V v, Use use) {
                            use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"]});
                          }};
  EXPECT_EQ(compare(loose.set(), loose.device(), reference_.set(), one, 0x1p-10), "");
  EXPECT_FALSE(run_case(loose.set(), loose.device(), one, DType::f32) ==
               run_case(tested->set(), tested->device(), one, DType::f32));
}

} // namespace
} // namespace triax::test
