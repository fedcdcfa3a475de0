// SPDX-License-Identifier: Apache-2.0
// Every backward of the element-wise operations, norms, softmax, rotary position embedding and linear layers, compared
// with central differences of its forward in double.
#include <numbers>

#include "kernels/kit.hpp"

namespace triax::test {
namespace {

using Gradients = FormulasTest;

TEST_F(Gradients, Gelu) {
  Array x = random({3, 11}, 1, -4, 4), c = random({3, 11}, 2), y = unwritten({3, 11}), dx = unwritten({3, 11});
  run(ActBwd{Activation::gelu_tanh, dx, c, x});
  check_gradient("gelu", x, dx, [&] {
    run(ActFwd{Activation::gelu_tanh, y, x});
    return dot(c, y);
  });
}

TEST_F(Gradients, SiluMul) {
  Array x = random({3, 10}, 1, -4, 4), c = random({3, 5}, 2), y = unwritten({3, 5}), dx = unwritten({3, 10});
  run(ActBwd{Activation::silu_mul, dx, c, x});
  check_gradient("silu_mul", x, dx, [&] {
    run(ActFwd{Activation::silu_mul, y, x});
    return dot(c, y);
  });
}

TEST_F(Gradients, Norms) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    const bool layer = kind == NormKind::layer;
    Array x = random({5, 7}, 1), w = random({7}, 2), b = random({7}, 3), c = random({5, 7}, 4);
    Array y = unwritten({5, 7}), mean = unwritten({5}), rstd = unwritten({5});
    const TensorView bias = layer ? TensorView(b) : TensorView{}, means = layer ? TensorView(mean) : TensorView{};
    const auto loss = [&] {
      run(NormFwd{kind, y, x, w, bias, means, rstd, 1e-5});
      return dot(c, y);
    };
    loss();
    Array dx = unwritten({5, 7}), dw({7}, 0.0), db({7}, 0.0);
    run(NormBwdInput{kind, dx, c, x, w, means, rstd, {}});
    run(NormBwdWeight{kind, dw, layer ? TensorView(db) : TensorView{}, c, x, means, rstd});
    check_gradient("norm by x", x, dx, loss);
    check_gradient("norm by weight", w, dw, loss);
    if (layer) check_gradient("norm by bias", b, db, loss);
  }
}

TEST_F(Gradients, NormAddsTheResidualsGradient) {
  // The loss reads x twice: through the norm and around it.
  for (const bool in_place : {false, true}) {
    Array x = random({4, 9}, 1), w = random({9}, 2), b = random({9}, 3), c = random({4, 9}, 4),
          around = random({4, 9}, 5);
    Array y = unwritten({4, 9}), mean = unwritten({4}), rstd = unwritten({4});
    const auto loss = [&] {
      run(NormFwd{NormKind::layer, y, x, w, b, mean, rstd, 1e-5});
      return dot(c, y) + dot(around, x);
    };
    loss();
    Array dx = in_place ? around : unwritten({4, 9});
    run(NormBwdInput{NormKind::layer, dx, c, x, w, mean, rstd, in_place ? dx : around});
    check_gradient("norm and residual", x, dx, loss);
    Array dy = c;
    run(NormBwdInput{NormKind::layer, dy, dy, x, w, mean, rstd, around});
    expect_near(dy, dx, 1e-14, "onto dy");
  }
}

TEST_F(Gradients, Softmax) {
  struct Case {
    Mask mask;
    bool lengths;
  };
  for (const Case& one : {Case{{}, false}, Case{{Mask::Kind::causal, 0, 0, {}}, false},
                          Case{{Mask::Kind::causal, 3, 1, {}}, false}, Case{{Mask::Kind::causal, 2, 0, {}}, true}}) {
    Array x = random({2, 3, 5, 6}, 1, -3, 3), c = random({2, 3, 5, 6}, 2), y = unwritten({2, 3, 5, 6}), dx = c;
    Ints lengths({2}, std::vector<std::int32_t>{4, 0});
    Mask mask = one.mask;
    if (one.lengths) mask.lengths = lengths;
    const auto loss = [&] {
      run(SoftmaxFwd{y, x, 0.7, mask, {}});
      return dot(c, y);
    };
    loss();
    run(SoftmaxBwd{dx, dx, y, 0.7});
    check_gradient("softmax", x, dx, loss);
  }
}

TEST_F(Gradients, LogSumExpOfSoftmaxHasTheProbabilitiesAsGradient) {
  Array x = random({1, 2, 3, 7}, 1, -3, 3), y = unwritten({1, 2, 3, 7}), lse = unwritten({1, 2, 3});
  const Mask mask{Mask::Kind::causal, 1, 0, {}};
  const auto loss = [&] {
    run(SoftmaxFwd{y, x, 0.7, mask, lse});
    double sum = 0;
    for (const double value : lse.data) sum += value;
    return sum;
  };
  loss();
  Array gradient = y;
  for (double& p : gradient.data) p *= 0.7;
  check_gradient("lse", x, gradient, loss);
}

TEST_F(Gradients, SoftmaxOfARowWithoutKeysIsZero) {
  Array x = random({1, 1, 3, 4}, 1), y = unwritten({1, 1, 3, 4}), lse = unwritten({1, 1, 3});
  run(SoftmaxFwd{y, x, 1, {Mask::Kind::causal, 0, 2, {}}, lse}); // keys 2..5: queries 0 and 1 see none
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(y[i], 0);
  EXPECT_EQ(y[8], 1);
  EXPECT_EQ(lse[0], -std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(lse[2], x[8]);
}

TEST_F(Gradients, RopeTurnsBackByItsInverse) {
  Array x = random({5, 2, 3, 8}, 1), c = random({5, 2, 3, 8}, 2), y = unwritten({5, 2, 3, 8});
  Array dx = unwritten({5, 2, 3, 8}), back = unwritten({5, 2, 3, 8});
  run(Rope{dx, c, 7, 10000, true});
  check_gradient("rope", x, dx, [&] {
    run(Rope{y, x, 7, 10000, false});
    return dot(c, y);
  });
  run(Rope{y, x, 7, 10000, false});
  run(Rope{back, y, 7, 10000, true});
  expect_near(back, x, 1e-14);
}

TEST_F(Gradients, RopeAngles) {
  // Position 3, base 100, a head of 4: the angles of the two pairs are 3 and 0.3.
  Array x({1, 1, 1, 4}, {1, 0, 0, 1}), y = unwritten({1, 1, 1, 4});
  run(Rope{y, x, 3, 100, false});
  expect_near(y, Array({4}, {std::cos(3.0), -std::sin(0.3), std::sin(3.0), std::cos(0.3)}), 1e-15);
}

TEST_F(Gradients, ScaledRopeAngles) {
  // Position 3, base 100, a head of 6: frequencies 1, 0.2154 and 0.0464. Over 4 pi positions, a frequency f makes 2 f
  // turns: at least 1 keeps it, at most 0.1 divides it by 8; the second keeps (0.4309 - 0.1) / 0.9 of it.
  const double second = std::pow(100, -1.0 / 3), kept = (2 * second - 0.1) / 0.9;
  const double angles[] = {3, 3 * (kept * second + (1 - kept) * second / 8), 3 * std::pow(100, -2.0 / 3) / 8};
  Array x({1, 1, 1, 6}, {1, 1, 1, 0, 0, 0}), y = unwritten({1, 1, 1, 6});
  run(Rope{y, x, 3, 100, false, {8, 0.1, 1, 4 * std::numbers::pi}});
  expect_near(y,
              Array({6}, {std::cos(angles[0]), std::cos(angles[1]), std::cos(angles[2]), std::sin(angles[0]),
                          std::sin(angles[1]), std::sin(angles[2])}),
              1e-15);
}

TEST_F(Gradients, Dropout) {
  Longs samples({2}, {5, 6});
  const Drop drop{
      .p = 0.4f, .key = philox_key(1, RandomPurpose::dropout), .site = 3, .samples = samples, .rows = 4, .width = 9};
  Array x = random({8, 9}, 1), c = random({8, 9}, 2), y = unwritten({8, 9}), dx = unwritten({8, 9});
  run(Dropout{dx, c, drop});
  check_gradient("dropout", x, dx, [&] {
    run(Dropout{y, x, drop});
    return dot(c, y);
  });
}

TEST_F(Gradients, Linear) {
  for (const Activation act : {Activation::none, Activation::gelu_tanh, Activation::silu_mul}) {
    const std::int64_t n = 6, out = act == Activation::silu_mul ? 3 : 6;
    const bool active = act != Activation::none;
    Array x = random({2, 2, 5}, 1), w = random({n, 5}, 2), b = random({n}, 3), c = random({2, 2, out}, 4);
    Array y = unwritten({2, 2, out}), z = unwritten({2, 2, n}), dz = c;
    const auto loss = [&] {
      run(LinearFwd{y, active ? TensorView(z) : TensorView{}, x, w, b, act});
      return dot(c, y);
    };
    loss();
    if (active) {
      dz = unwritten({2, 2, n});
      run(ActBwd{act, dz, c, z});
    }
    Array dx = unwritten({2, 2, 5}), dw({n, 5}, 0.0), db({n}, 0.0);
    run(LinearBwdInput{dx, dz, w});
    run(LinearBwdWeight{dw, db, dz, x});
    check_gradient("linear by x", x, dx, loss);
    check_gradient("linear by w", w, dw, loss);
    check_gradient("linear by bias", b, db, loss);
  }
}

TEST_F(Gradients, LinearOfAnActivation) {
  for (const Activation act : {Activation::gelu_tanh, Activation::silu_mul}) {
    const std::int64_t in = act == Activation::silu_mul ? 10 : 5;
    Array before = random({2, 2, in}, 1), w = random({6, 5}, 2), c = random({2, 2, 6}, 3);
    Array x = unwritten({2, 2, 5}), y = unwritten({2, 2, 6}), dbefore = unwritten({2, 2, in});
    const auto loss = [&] {
      run(ActFwd{act, x, before});
      run(LinearFwd{.y = y, .x = x, .w = w});
      return dot(c, y);
    };
    loss();
    run(LinearBwdInput{dbefore, c, w, before, act});
    check_gradient("linear by what comes before its activation", before, dbefore, loss);
  }
}

TEST_F(Gradients, Embedding) {
  // The table holds tokens 4..8 and one row of padding; other tokens give zeros.
  Array table = random({6, 3}, 1), c = random({4, 2, 3}, 2), y = unwritten({4, 2, 3});
  Ints tokens({4, 2}, {4, 9, 8, 4, 0, 5, 4, 7});
  const auto loss = [&] {
    run(EmbedFwd{y, table, tokens, 4, 5});
    return dot(c, y);
  };
  loss();
  for (const std::int64_t row : {1, 4}) {
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(y[row * 3 + j], 0);
  }
  Array dtable({6, 3}, 0.0);
  run(EmbedBwd{dtable, c, tokens, 4, 5});
  check_gradient("embedding", table, dtable, loss);
  for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(dtable[5 * 3 + j], 0);
}

TEST_F(Gradients, WhatIsAddedToKeepsWhatWasThere) {
  Array dy = random({6, 4}, 1), x = random({6, 4}, 2), mean = random({6}, 3), rstd = random({6}, 4, 1, 2);
  Ints tokens({6}, {0, 1, 1, 2, 0, 0});
  const auto twice = [](Array& zero, Array& start, const auto& operation) {
    operation(zero);
    const Array before = start;
    operation(start);
    for (std::int64_t i = 0; i < zero.shape.elements(); ++i) EXPECT_NEAR(start[i], before[i] + zero[i], 1e-14);
  };
  Array a({4}, 0.0), b = random({4}, 5), c({4, 4}, 0.0), d = random({4, 4}, 6), e({3, 4}, 0.0), f = random({3, 4}, 7);
  twice(a, b, [&](Array& to) { run(BiasBwd{to, dy}); });
  a = Array({4}, 0.0);
  Array bias({4}, 0.0);
  twice(a, b, [&](Array& to) { run(NormBwdWeight{NormKind::layer, to, bias, dy, x, mean, rstd}); });
  a = Array({4}, 0.0);
  twice(a, b, [&](Array& to) { run(NormBwdWeight{NormKind::layer, bias, to, dy, x, mean, rstd}); });
  twice(c, d, [&](Array& to) { run(LinearBwdWeight{to, {}, dy, x}); });
  twice(e, f, [&](Array& to) { run(EmbedBwd{to, dy, tokens, 0, 3}); });
}

} // namespace
} // namespace triax::test
