// SPDX-License-Identifier: Apache-2.0
// AdamW and SGD over several steps, compared element by element with the published formulas.
#include "kernels/kit.hpp"

namespace triax::test {
namespace {

constexpr std::int64_t kSize = 5;

/// Scalars of a few steps: learning rate and clip coefficient change, and one step is skipped.
std::vector<StepScalars> some_steps() {
  std::vector<StepScalars> steps;
  for (int i = 1; i <= 6; ++i) {
    steps.push_back(
        {.lr = 0.1f / static_cast<float>(i), .clip = i % 2 ? 1.0f : 0.25f, .skip = i == 4 ? 1.0f : 0.0f, .step = i});
  }
  return steps;
}

Array gradient_of(const StepScalars& now) {
  return random({kSize}, static_cast<std::uint32_t>(100 + now.step));
}

using Optimizers = FormulasTest;

TEST_F(Optimizers, AdamWIsItsFormula) {
  for (const double decay : {0.0, 0.3}) {
    Array p = random({kSize}, 1), m({kSize}, 0.0), v({kSize}, 0.0);
    Floats working({kSize}, 0.0f);
    std::vector<double> want = p.data, first(kSize, 0.0), second(kSize, 0.0);
    for (const StepScalars& now : some_steps()) {
      Array g = gradient_of(now);
      run(AdamW{p, g, m, v, working, 0.9, 0.95, 1e-8, decay, &now});
      for (std::size_t i = 0; i < kSize && now.skip == 0; ++i) {
        const double clipped = g.data[i] * static_cast<double>(now.clip);
        first[i] = 0.9 * first[i] + 0.1 * clipped;
        second[i] = 0.95 * second[i] + 0.05 * clipped * clipped;
        const double step = static_cast<double>(now.step);
        const double mean = first[i] / (1 - std::pow(0.9, step)), square = second[i] / (1 - std::pow(0.95, step));
        want[i] -= static_cast<double>(now.lr) * (mean / (std::sqrt(square) + 1e-8) + decay * want[i]);
      }
      for (std::size_t i = 0; i < kSize; ++i) {
        ASSERT_NEAR(p.data[i], want[i], 1e-14) << "step " << now.step;
        ASSERT_NEAR(m.data[i], first[i], 1e-15);
        ASSERT_NEAR(v.data[i], second[i], 1e-15);
        ASSERT_EQ(working.data[i], static_cast<float>(p.data[i]));
      }
    }
  }
}

TEST_F(Optimizers, FirstStepOfAdamWMovesByTheRate) {
  Array p({2}, 0.0), g({2}, {3.0, -0.02}), m({2}, 0.0), v({2}, 0.0);
  const StepScalars now{.lr = 0.5f, .step = 1};
  run(AdamW{p, g, m, v, {}, 0.9, 0.95, 1e-8, 0, &now});
  EXPECT_NEAR(p[0], -0.5, 1e-6);
  EXPECT_NEAR(p[1], 0.5, 1e-6);
}

TEST_F(Optimizers, SgdIsItsFormula) {
  for (const double momentum : {0.0, 0.8}) {
    for (const double decay : {0.0, 0.3}) {
      Array p = random({kSize}, 1), velocity({kSize}, 0.0), working = unwritten({kSize});
      std::vector<double> want = p.data, u(kSize, 0.0);
      for (const StepScalars& now : some_steps()) {
        Array g = gradient_of(now);
        run(Sgd{p, g, momentum == 0 ? TensorView{} : TensorView(velocity), working, momentum, decay, &now});
        for (std::size_t i = 0; i < kSize && now.skip == 0; ++i) {
          const double clipped = g.data[i] * static_cast<double>(now.clip) + decay * want[i];
          u[i] = now.step == 1 ? clipped : momentum * u[i] + clipped;
          want[i] -= static_cast<double>(now.lr) * (momentum == 0 ? clipped : u[i]);
        }
        for (std::size_t i = 0; i < kSize; ++i) {
          ASSERT_NEAR(p.data[i], want[i], 1e-14) << "step " << now.step;
          ASSERT_EQ(working.data[i], p.data[i]);
        }
      }
    }
  }
}

TEST_F(Optimizers, SkippedStepChangesNoBit) {
  Array p = random({kSize}, 1), g({kSize}, kNan), m = random({kSize}, 2), v = random({kSize}, 3, 0, 1);
  Array working = random({kSize}, 4);
  const Array before[] = {p, m, v, working};
  for (const std::int64_t step : {0, 2}) { // the first may be skipped
    const StepScalars now{.lr = 0.1f, .skip = 1, .step = step};
    run(AdamW{p, g, m, v, working, 0.9, 0.95, 1e-8, 0.1, &now});
    run(Sgd{p, g, m, working, 0.9, 0.1, &now});
  }
  EXPECT_EQ(p.data, before[0].data);
  EXPECT_EQ(m.data, before[1].data);
  EXPECT_EQ(v.data, before[2].data);
  EXPECT_EQ(working.data, before[3].data);
}

TEST_F(Optimizers, ShardsOneAfterAnotherAreTheShards) {
  const StepScalars now{.lr = 0.1f, .clip = 0.5f, .step = 3};
  Array p = random({7}, 1), g = random({7}, 2), m = random({7}, 3), v = random({7}, 4, 0, 1);
  Array p2 = p, m2 = m, v2 = v;
  const auto shard = [&](Array& x, Array& first, Array& second, std::int64_t begin, std::int64_t end) {
    const auto part = [&](Array& of) { return TensorView(of).slice(0, begin, end); };
    return AdamW{part(x), part(g), part(first), part(second), {}, 0.9, 0.95, 1e-8, 0.1, &now};
  };
  run(shard(p, m, v, 0, 7));
  const AdamW shards[] = {shard(p2, m2, v2, 0, 3), shard(p2, m2, v2, 3, 7)};
  run(MultiAdamW{shards});
  EXPECT_EQ(p.data, p2.data);
  EXPECT_EQ(v.data, v2.data);
}

TEST_F(Optimizers, StepsCountFromOneAndNeedScalars) {
  Array p = random({2}, 1), g = p, m = p, v = p;
  const StepScalars zero{};
  EXPECT_THROW(run(AdamW{p, g, m, v, {}, 0.9, 0.95, 1e-8, 0, &zero}), Error);
  EXPECT_THROW(run(Sgd{p, g, {}, {}, 0, 0, nullptr}), Error);
}

} // namespace
} // namespace triax::test
