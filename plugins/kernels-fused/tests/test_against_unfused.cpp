// SPDX-License-Identifier: Apache-2.0
// Compares kernels-fused with kernels-cublas on the same GPU: results differ only by rounding.
#include <algorithm>
#include <cmath>

#include "support/gpu_kernels_suite.hpp"
#include "support/operation_cases.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;
using V = const CaseViews&;
using Use = const UseCall&;

class AgainstUnfused : public OnGpu {};

/// Compares both sets' results of a case; `tolerance` is relative to the largest value.
void expect_alike(LoadedKernels& fused, LoadedKernels& unfused, const OperationCase& one, double tolerance) {
  const CaseResults got = run_case(fused.set(), fused.device(), one, one.dtype);
  const CaseResults want = run_case(unfused.set(), unfused.device(), one, one.dtype);
  for (const auto& [name, values] : want) {
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    const double allowed = tolerance * std::max(largest, 1.0);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_LE(std::abs(values[i] - got.at(name)[i]), allowed) << one.name << ", " << name << " " << i; // NaN fails
  }
}

/// Shapes of a real layer, for which cuBLASLt's epilogues are used.
TEST_F(AgainstUnfused, ALinearLayerOfARealModel) {
  LoadedKernels unfused("kernels-cublas");
  const std::int64_t rows = 512, n = 1024, k = 256;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const double tolerance = type == DType::f32 ? 1e-5 : type == DType::bf16 ? 0x1p-6 : 0x1p-9;
    const auto gradient = [](const char* name, Shape shape) {
      return CaseTensor{.name = name, .role = Role::in_out, .shape = shape, .kind = Kind::statistic};
    };
    expect_alike(*tested, unfused,
                 {text("linear {}", name_of(type)),
                  type,
                  {in("x", {rows, k}), in("w", {n, k}), in("b", {n}), out("y", {rows, n}), out("z", {rows, n}),
                   in("dy", {rows, n}), out("dx", {rows, k}), gradient("dw", {n, k}), gradient("db", {n}),
                   in("before", {rows, k}), out("dbefore", {rows, k})},
                  [](V v, Use use) {
                    use(LinearFwd{v["y"], v["z"], v["x"], v["w"], v["b"], Activation::gelu_tanh});
                    use(LinearBwdInput{v["dx"], v["dy"], v["w"]});
                    use(LinearBwdInput{v["dbefore"], v["dy"], v["w"], v["before"], Activation::gelu_tanh});
                    use(LinearBwdWeight{v["dw"], v["db"], v["dy"], v["x"]});
                  }},
                 tolerance);
  }
}

/// GELU uses the tanh formula: at 2 it differs from the erf formula by 2e-4.
TEST_F(AgainstUnfused, GeluIsOfTanh) {
  CaseTensor x = in("x", {16, 16}), w = in("w", {16, 16});
  x.low = x.high = 2;
  for (int i = 0; i < 256; ++i) w.values.push_back(i % 17 == 0 ? 1 : 0);
  const OperationCase one{"gelu", DType::f32, {x, w, out("y", {16, 16}), out("z", {16, 16})}, [](V v, Use use) {
                            use(LinearFwd{v["y"], v["z"], v["x"], v["w"], {}, Activation::gelu_tanh});
                          }};
  const CaseResults got = run_case(tested->set(), tested->device(), one, DType::f32);
  EXPECT_NEAR(got.at("y")[0], 2 * 0.5 * (1 + std::tanh(0.7978845608028654 * (2 + 0.044715 * 8))), 2e-6);
}

} // namespace
} // namespace triax::kernels_fused
