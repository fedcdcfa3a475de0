// SPDX-License-Identifier: Apache-2.0
// Linear layers as column-major products: evaluated as cuBLASLt documents them, they match the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "product.hpp"
#include "support/loaded_kernels.hpp"
#include "triax/half.hpp"

namespace triax::kernels_fused {
namespace {

using Floats = std::vector<float>;

/// Values that are exact in 16 bits.
Floats numbers(std::size_t count, int seed) {
  Floats out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>((static_cast<int>(i) * 7 + seed * 13) % 23 - 11) / 8;
  return out;
}

std::vector<Bf16> bf16(const Floats& of) {
  return {of.begin(), of.end()};
}
Floats floats(const std::vector<Bf16>& of) {
  return {of.begin(), of.end()};
}

float gelu(float x) {
  return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}
float gelu_slope(float x) {
  const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x), t = std::tanh(inner);
  return static_cast<float>(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x));
}

/// As cuBLASLt documents it: element (i, j) of a column-major matrix is at i + j * (leading dimension).
template <class In, class Out>
void multiply(const Product& product) {
  const ProductShape& shape = product.shape;
  const auto *a = static_cast<const In*>(product.a), *b = static_cast<const In*>(product.b);
  const auto* bias = static_cast<const Out*>(product.bias);
  auto *d = static_cast<Out*>(product.d), *gelu_aux = static_cast<Out*>(product.gelu_aux);
  const auto b_at = [&](std::int64_t l, std::int64_t j) {
    return static_cast<float>(shape.transpose_b ? b[j + l * shape.ldb()] : b[l + j * shape.ldb()]);
  };
  for (std::int64_t j = 0; j < shape.n; ++j) {
    for (std::int64_t i = 0; i < shape.m; ++i) {
      Out* before = gelu_aux + (gelu_aux ? i + j * shape.m : 0);
      float value = 0;
      for (std::int64_t l = 0; l < shape.k; ++l)
        value += static_cast<float>(shape.transpose_a ? a[l + i * shape.lda()] : a[i + l * shape.lda()]) * b_at(l, j);
      if (shape.has_bias()) value += static_cast<float>(bias[i]);
      if (shape.epilogue == Epilogue::gelu_bwd) {
        value *= gelu_slope(static_cast<float>(*before));
      } else if (shape.has_gelu()) {
        *before = Out(value);
        value = gelu(value);
      }
      Out& to = d[i + j * shape.m];
      to = Out(shape.accumulates ? static_cast<float>(to) + value : value);
    }
  }
  if (shape.epilogue != Epilogue::bias_bwd) return;
  auto* dbias = static_cast<Out*>(product.dbias);
  for (std::int64_t j = 0; j < shape.n; ++j) { // for each column of D, a sum over all terms of the product
    float sum = 0;
    for (std::int64_t l = 0; l < shape.k; ++l) sum += b_at(l, j);
    dbias[j] = Out(sum);
  }
}

TensorView view(Floats& of, Shape shape) {
  return {of.data(), DType::f32, shape};
}
TensorView view(std::vector<Bf16>& of, Shape shape) {
  return {of.data(), DType::bf16, shape};
}

class Products : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 5, kN = 8, kK = 3;
  void expect_near(const Floats& got, const Floats& want, double tolerance = 1e-4) {
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
  }
  OpContext context() { return {*stream_, scratch_}; }

  Floats x_ = numbers(kRows * kK, 1), w_ = numbers(kN * kK, 2), bias_ = numbers(kN, 3), dy_ = numbers(kRows * kN, 4);
  triax::test::LoadedKernels reference_{"kernels-reference"};
  std::unique_ptr<Stream> stream_ = reference_.device().make_stream("test");
  std::vector<std::byte> scratch_ = std::vector<std::byte>(1 << 16);
};

/// Arguments of the forward, in f32 or bf16.
template <class Array>
LinearFwd forward(Array& y, Array& z, Array& x, Array& w, Array* bias, Activation act) {
  const std::int64_t rows = 5, n = 8, k = 3;
  return {view(y, {rows, n}),
          act == Activation::none ? TensorView{} : view(z, {rows, n}),
          view(x, {rows, k}),
          view(w, {n, k}),
          bias ? view(*bias, {n}) : TensorView{},
          act};
}

TEST_F(Products, TheForwardWithItsEpilogues) {
  for (const bool bias : {false, true}) {
    for (const Activation act : {Activation::none, Activation::gelu_tanh}) {
      Floats want_y(kRows * kN), want_z(want_y);
      reference_.set().linear_fwd(forward(want_y, want_z, x_, w_, bias ? &bias_ : nullptr, act), context());
      std::vector<Bf16> y(kRows * kN), z(y), x = bf16(x_), w = bf16(w_), b = bf16(bias_);
      const Product product = product_of(forward(y, z, x, w, bias ? &b : nullptr, act));
      EXPECT_TRUE(suits_lt(product));
      multiply<Bf16, Bf16>(product);
      expect_near(floats(y), want_y, 0.05);
      if (act != Activation::none) expect_near(floats(z), want_z, 0.05);
    }
  }
}

/// In f32, GELU is a separate pass: the product writes GELU's input, with the bias added.
TEST_F(Products, OfF32LeaveTheActivationOut) {
  Floats y(kRows * kN), z(y), want_y(y), want_z(y);
  reference_.set().linear_fwd(forward(want_y, want_z, x_, w_, &bias_, Activation::gelu_tanh), context());
  const Product product = product_of(forward(y, z, x_, w_, &bias_, Activation::gelu_tanh));
  EXPECT_EQ(product.shape.epilogue, Epilogue::bias);
  multiply<float, float>(product);
  expect_near(z, want_z);
}

/// silu_mul is a separate kernel, after the product with its bias.
TEST_F(Products, ComputeTheInputOfSiluMul) {
  Floats y(kRows * kN / 2), z(kRows * kN), want_y(y), want_z(z);
  const auto args = [&](Floats& to, Floats& before) {
    return LinearFwd{view(to, {kRows, kN / 2}), view(before, {kRows, kN}), view(x_, {kRows, kK}),
                     view(w_, {kN, kK}),        view(bias_, {kN}),         Activation::silu_mul};
  };
  reference_.set().linear_fwd(args(want_y, want_z), context());
  multiply<float, float>(product_of(args(y, z)));
  expect_near(z, want_z);
}

TEST_F(Products, TheGradients) {
  Floats dx(kRows * kK), want_dx(dx), dw = numbers(kN * kK, 5), want_dw(dw);
  const auto input = [&](Floats& to) {
    return LinearBwdInput{view(to, {kRows, kK}), view(dy_, {kRows, kN}), view(w_, {kN, kK})};
  };
  reference_.set().linear_bwd_input(input(want_dx), context());
  multiply<float, float>(product_of(input(dx)));
  expect_near(dx, want_dx);
  const auto weight = [&](Floats& to) {
    return LinearBwdWeight{view(to, {kN, kK}), {}, view(dy_, {kRows, kN}), view(x_, {kRows, kK})};
  };
  reference_.set().linear_bwd_weight(weight(want_dw), context());
  multiply<float, float>(product_of(weight(dw)));
  expect_near(dw, want_dw);
}

TEST_F(Products, TheGradientThroughAnActivation) {
  Floats w = numbers(kN * kN, 5), before = numbers(kRows * kN, 6), want(kRows * kN);
  const auto args = [](auto& to, auto& dy, auto& weight, auto& input) {
    return LinearBwdInput{view(to, {kRows, kN}), view(dy, {kRows, kN}), view(weight, {kN, kN}),
                          view(input, {kRows, kN}), Activation::gelu_tanh};
  };
  reference_.set().linear_bwd_input(args(want, dy_, w, before), context());
  std::vector<Bf16> dx(kRows * kN), dy = bf16(dy_), weight = bf16(w), input = bf16(before);
  const Product product = product_of(args(dx, dy, weight, input));
  EXPECT_TRUE(suits_lt(product));
  multiply<Bf16, Bf16>(product);
  expect_near(floats(dx), want, 0.05);
  EXPECT_EQ(product_of(args(want, dy_, w, before)).shape.epilogue, Epilogue::none) << "of f32";
}

/// Inputs of 16 bits, gradients in f32.
TEST_F(Products, TheBiasGradientOfTheEpilogueIsAPart) {
  Floats dw = numbers(kN * kK, 5), want_dw(dw), part(kN, 99), want(kN, 0);
  reference_.set().linear_bwd_weight(
      {view(want_dw, {kN, kK}), view(want, {kN}), view(dy_, {kRows, kN}), view(x_, {kRows, kK})}, context());
  std::vector<Bf16> dy = bf16(dy_), x = bf16(x_);
  const Product plain =
      product_of(LinearBwdWeight{view(dw, {kN, kK}), view(want, {kN}), view(dy, {kRows, kN}), view(x, {kRows, kK})});
  const Product product = with_bias_gradient(plain, part.data());
  EXPECT_TRUE(suits_lt(product));
  EXPECT_FALSE(suits_lt(with_bias_gradient(product, part.data() + 1))) << "alignment";
  EXPECT_NE(product.shape, plain.shape) << "another algorithm";
  multiply<Bf16, float>(product);
  expect_near(dw, want_dw);
  expect_near(part, want);
}

TEST_F(Products, GoToCublasLtByShapeAndAlignment) {
  alignas(16) std::byte memory[64];
  const auto product = [&](std::int64_t n, std::ptrdiff_t offset, Activation act) {
    const auto at = [&](Shape shape) { return TensorView(memory + offset, DType::bf16, shape); };
    const TensorView z = act == Activation::none ? TensorView{} : at({2, n});
    return product_of(LinearFwd{at({2, n}), z, at({2, 4}), at({n, 4}), at({n}), act});
  };
  EXPECT_TRUE(suits_lt(product(8, 0, Activation::gelu_tanh)));
  EXPECT_TRUE(suits_lt(product(7, 0, Activation::none)));
  EXPECT_FALSE(suits_lt(product(7, 0, Activation::gelu_tanh))) << "rows of the second result";
  EXPECT_FALSE(suits_lt(product(8, 4, Activation::none))) << "alignment";
  EXPECT_FALSE(suits_lt(product(0, 0, Activation::none))) << "nothing to compute";
}

/// The choice of an algorithm does not depend on addresses.
TEST_F(Products, OfOneShapeShareAnAlgorithm) {
  Floats other = x_, y(kRows * kN);
  const auto of = [&](Floats& x) {
    return product_of(LinearFwd{.y = view(y, {kRows, kN}), .x = view(x, {kRows, kK}), .w = view(w_, {kN, kK})}).shape;
  };
  EXPECT_EQ(of(x_), of(other));
  EXPECT_NE(of(x_), product_of(LinearBwdInput{view(x_, {kRows, kK}), view(y, {kRows, kN}), view(w_, {kN, kK})}).shape);
}

} // namespace
} // namespace triax::kernels_fused
