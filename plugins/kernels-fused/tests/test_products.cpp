// Linear layers as products in columns: computed as cuBLASLt would, they are the reference's.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "product.hpp"
#include "support/loaded_kernels.hpp"

namespace triax::fused {
namespace {

using Floats = std::vector<float>;

Floats numbers(std::size_t count, int seed) {
  Floats out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>((static_cast<int>(i) * 7 + seed * 13) % 23 - 11) / 8;
  return out;
}

float gelu_slope(float x) {
  const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x), t = std::tanh(inner);
  return static_cast<float>(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x));
}

/// As cuBLASLt documents it: element (i, j) of a matrix in columns lies at i + j * (leading dimension).
void multiply(const Product& product) {
  const ProductShape& shape = product.shape;
  const auto* a = static_cast<const float*>(product.a);
  const auto* b = static_cast<const float*>(product.b);
  const auto* bias = static_cast<const float*>(product.bias);
  auto* d = static_cast<float*>(product.d);
  auto* before_gelu = static_cast<float*>(product.before_gelu);
  const bool forward_gelu = before_gelu && shape.epilogue != Epilogue::gelu_bwd;
  for (std::int64_t j = 0; j < shape.n; ++j) {
    for (std::int64_t i = 0; i < shape.m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < shape.k; ++l)
        sum += static_cast<double>(shape.transpose_a ? a[l + i * shape.lda()] : a[i + l * shape.lda()]) *
               static_cast<double>(shape.transpose_b ? b[j + l * shape.ldb()] : b[l + j * shape.ldb()]);
      auto value = static_cast<float>(sum);
      if (shape.epilogue == Epilogue::gelu_bwd) value *= gelu_slope(before_gelu[i + j * shape.m]);
      if (shape.epilogue == Epilogue::bias || shape.epilogue == Epilogue::gelu_bias) value += bias[i];
      if (forward_gelu) before_gelu[i + j * shape.m] = value;
      if (forward_gelu)
        value = 0.5f * value * (1 + std::tanh(0.79788456f * (value + 0.044715f * value * value * value)));
      d[i + j * shape.m] = shape.accumulates ? d[i + j * shape.m] + value : value;
    }
  }
  if (shape.epilogue != Epilogue::bias_bwd) return;
  auto* dbias = static_cast<float*>(product.dbias);
  for (std::int64_t j = 0; j < shape.n; ++j) { // of each column of D, over all terms of the product
    dbias[j] = 0;
    for (std::int64_t l = 0; l < shape.k; ++l)
      dbias[j] += shape.transpose_b ? b[j + l * shape.ldb()] : b[l + j * shape.ldb()];
  }
}

class Products : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 5, kN = 8, kK = 3;
  static TensorView view(Floats& of, Shape shape) { return {of.data(), DType::f32, shape}; }
  void expect_near(const Floats& got, const Floats& want) {
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
  }
  OpContext context() { return {*stream_, scratch_}; }

  Floats x_ = numbers(kRows * kK, 1), w_ = numbers(kN * kK, 2), bias_ = numbers(kN, 3), dy_ = numbers(kRows * kN, 4);
  triax::testing::LoadedKernels reference_{"kernels-reference"};
  std::unique_ptr<Stream> stream_ = reference_.device().make_stream("test");
  std::vector<std::byte> scratch_ = std::vector<std::byte>(1 << 16);
};

TEST_F(Products, TheForwardWithItsEpilogues) {
  for (const bool bias : {false, true}) {
    for (const Activation act : {Activation::none, Activation::gelu_tanh}) {
      Floats y(kRows * kN), z(kRows * kN), want_y(y), want_z(z);
      const bool gelu = act == Activation::gelu_tanh;
      const auto args = [&](Floats& to, Floats& before) {
        return LinearFwd{view(to, {kRows, kN}), gelu ? view(before, {kRows, kN}) : TensorView{}, view(x_, {kRows, kK}),
                         view(w_, {kN, kK}),    bias ? view(bias_, {kN}) : TensorView{},         act};
      };
      reference_.set().linear_fwd(args(want_y, want_z), context());
      const Product product = product_of(args(y, z));
      EXPECT_TRUE(suits_lt(product));
      multiply(product);
      expect_near(y, want_y);
      expect_near(z, want_z);
    }
  }
}

/// silu_mul has a kernel of its own, after the product with its bias.
TEST_F(Products, OfSiluMulIsWhatTheActivationTakes) {
  Floats y(kRows * kN / 2), z(kRows * kN), want_y(y), want_z(z);
  const auto args = [&](Floats& to, Floats& before) {
    return LinearFwd{view(to, {kRows, kN / 2}), view(before, {kRows, kN}), view(x_, {kRows, kK}),
                     view(w_, {kN, kK}),        view(bias_, {kN}),         Activation::silu_mul};
  };
  reference_.set().linear_fwd(args(want_y, want_z), context());
  multiply(product_of(args(y, z)));
  expect_near(z, want_z);
}

TEST_F(Products, TheGradients) {
  Floats dx(kRows * kK), want_dx(dx), dw = numbers(kN * kK, 5), want_dw(dw);
  const auto input = [&](Floats& to) {
    return LinearBwdInput{view(to, {kRows, kK}), view(dy_, {kRows, kN}), view(w_, {kN, kK})};
  };
  reference_.set().linear_bwd_input(input(want_dx), context());
  multiply(product_of(input(dx)));
  expect_near(dx, want_dx);
  const auto weight = [&](Floats& to) {
    return LinearBwdWeight{view(to, {kN, kK}), {}, view(dy_, {kRows, kN}), view(x_, {kRows, kK})};
  };
  reference_.set().linear_bwd_weight(weight(want_dw), context());
  multiply(product_of(weight(dw)));
  expect_near(dw, want_dw);
}

TEST_F(Products, TheGradientThroughAnActivation) {
  Floats w = numbers(kN * kN, 5), before = numbers(kRows * kN, 6), dx(kRows * kN), want_dx(dx);
  const auto args = [&](Floats& to) {
    return LinearBwdInput{view(to, {kRows, kN}), view(dy_, {kRows, kN}), view(w, {kN, kN}), view(before, {kRows, kN}),
                          Activation::gelu_tanh};
  };
  reference_.set().linear_bwd_input(args(want_dx), context());
  const Product product = product_of(args(dx));
  EXPECT_TRUE(suits_lt(product));
  multiply(product);
  expect_near(dx, want_dx);
}

TEST_F(Products, TheBiasGradientOfTheEpilogueIsAPart) {
  Floats dw = numbers(kN * kK, 5), want_dw(dw), part(kN, 99), want(kN, 0);
  const auto args = [&](Floats& to, Floats& dbias) {
    return LinearBwdWeight{view(to, {kN, kK}), view(dbias, {kN}), view(dy_, {kRows, kN}), view(x_, {kRows, kK})};
  };
  reference_.set().linear_bwd_weight(args(want_dw, want), context());
  const Product product = with_bias_gradient(product_of(args(dw, want)), part.data());
  EXPECT_TRUE(suits_lt(product));
  EXPECT_FALSE(suits_lt(with_bias_gradient(product, part.data() + 1))) << "alignment";
  EXPECT_NE(product.shape, product_of(args(dw, want)).shape) << "another algorithm";
  multiply(product);
  expect_near(dw, want_dw);
  expect_near(part, want);
}

TEST_F(Products, GoToCublasLtByShapeAndAlignment) {
  alignas(16) std::byte memory[64];
  const auto product = [&](std::int64_t n, std::ptrdiff_t offset, Activation act) {
    const auto at = [&](Shape shape) { return TensorView(memory + offset, DType::f32, shape); };
    const TensorView z = act == Activation::none ? TensorView{} : at({2, n});
    return product_of(LinearFwd{at({2, n}), z, at({2, 4}), at({n, 4}), at({n}), act});
  };
  EXPECT_TRUE(suits_lt(product(8, 0, Activation::gelu_tanh)));
  EXPECT_TRUE(suits_lt(product(7, 0, Activation::none)));
  EXPECT_FALSE(suits_lt(product(7, 0, Activation::gelu_tanh))) << "rows of the second result";
  EXPECT_FALSE(suits_lt(product(8, 4, Activation::none))) << "alignment";
  EXPECT_FALSE(suits_lt(product(0, 0, Activation::none))) << "nothing to compute";
}

/// Where something lies is no part of what an algorithm is chosen by.
TEST_F(Products, OfOneShapeShareAnAlgorithm) {
  Floats other = x_, y(kRows * kN);
  const auto of = [&](Floats& x) {
    return product_of(LinearFwd{.y = view(y, {kRows, kN}), .x = view(x, {kRows, kK}), .w = view(w_, {kN, kK})}).shape;
  };
  EXPECT_EQ(of(x_), of(other));
  EXPECT_NE(of(x_), product_of(LinearBwdInput{view(x_, {kRows, kK}), view(y, {kRows, kN}), view(w_, {kN, kK})}).shape);
}

} // namespace
} // namespace triax::fused
