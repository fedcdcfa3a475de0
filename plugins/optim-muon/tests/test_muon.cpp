// SPDX-License-Identifier: Apache-2.0
// optim-muon, loaded as a plugin, on kernels-reference in double, compared with plain loops of its papers' formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <vector>

#include "plugin/loader.hpp"
#include "sample_values.hpp"
#include "support/installation.hpp"
#include "triax/half.hpp"
#include "triax/optimizer.hpp"
#include "triax/parallel.hpp"
#include "triax/saved_state.hpp"

namespace {
using namespace triax;
using test::sample_values;

constexpr double kLr = 0.125, kClip = 0.5, kDecay = 0.25; // exact in float, the type of StepScalars
constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEps = 1e-6;

struct MuonRule {
  double momentum = 0.95;
  bool nesterov = true;
  int iterations = 5;
  double update_rms = 0.2;
};

using Values = std::vector<double>;

/// a b, of row-major matrices [rows, inner] and [inner, columns].
Values product(const Values& a, const Values& b, std::size_t rows, std::size_t inner, std::size_t columns) {
  Values out(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return out;
}

Values transposed(const Values& x, std::size_t rows, std::size_t columns) {
  Values out(x.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) out[j * rows + i] = x[i * columns + j];
  return out;
}

/// zeropower_via_newtonschulz5 of Jordan's code, in double, always with X X^T.
Values orthogonalized(Values x, std::size_t rows, std::size_t columns, int iterations) {
  const double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)) + 1e-7;
  for (double& value : x) value /= norm;
  for (int step = 0; step < iterations; ++step) {
    const Values a = product(x, transposed(x, rows, columns), rows, columns, rows);
    const Values squared = product(a, a, rows, rows, rows);
    Values b(a.size());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * squared[i];
    const Values added = product(b, x, rows, rows, columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + added[i];
  }
  return x;
}

/// One parameter, with the tensors that the engine keeps for it and the values that the formulas expect.
struct MuonParameter {
  std::string name;
  Values master, gradient, m, v;
  Values expected, expected_m, expected_v;
  ParamSpec spec;
  std::vector<TensorView> state;

  MuonParameter(std::string of, const Shape& shape, bool with_decay)
      : name(std::move(of)),
        master(sample_values(static_cast<std::size_t>(shape.elements()), 1)),
        gradient(sample_values(master.size(), 2)),
        m(master.size()),
        v(master.size()),
        expected(master),
        expected_m(master.size()),
        expected_v(master.size()),
        spec(replicated(name, shape, {}, with_decay)),
        state{view(m), view(v)} {}

  static TensorView view(Values& of) { return {of.data(), DType::f64, Shape{static_cast<std::int64_t>(of.size())}}; }
  ParameterShard shard() {
    return {
        .name = name, .spec = &spec, .master = view(master), .gradient = view(gradient), .working = {}, .state = state};
  }

  void expect_adamw(int step) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double g = gradient[i] * kClip;
      expected_m[i] = kBeta1 * expected_m[i] + (1 - kBeta1) * g;
      expected_v[i] = kBeta2 * expected_v[i] + (1 - kBeta2) * g * g;
      const double mean = expected_m[i] / (1 - std::pow(kBeta1, step)),
                   square = expected_v[i] / (1 - std::pow(kBeta2, step));
      expected[i] -= kLr * (mean / (std::sqrt(square) + kEps) + (spec.decay ? kDecay : 0) * expected[i]);
    }
  }

  /// Each of the matrices in the last two dimensions by itself.
  void expect_muon(const MuonRule& rule) {
    const auto rows = static_cast<std::size_t>(spec.global[-2]), columns = static_cast<std::size_t>(spec.global[-1]);
    const double scale = rule.update_rms * std::sqrt(static_cast<double>(std::max(rows, columns)));
    for (std::size_t first = 0; first < expected.size(); first += rows * columns) {
      Values direction(rows * columns);
      for (std::size_t i = 0; i < direction.size(); ++i) {
        const double g = gradient[first + i] * kClip;
        double& mean = expected_m[first + i];
        mean = rule.momentum * mean + g;
        direction[i] = rule.nesterov ? g + rule.momentum * mean : mean;
      }
      const Values update = orthogonalized(direction, rows, columns, rule.iterations);
      for (std::size_t i = 0; i < update.size(); ++i)
        expected[first + i] = (1 - kLr * kDecay) * expected[first + i] - kLr * scale * update[i];
    }
  }

  void expect_held(int step) const {
    for (std::size_t i = 0; i < master.size(); ++i) {
      EXPECT_NEAR(master[i], expected[i], 1e-9) << name << ", step " << step << ", element " << i;
      EXPECT_NEAR(m[i], expected_m[i], 1e-12) << name << ", step " << step << ", element " << i;
      EXPECT_NEAR(v[i], expected_v[i], 1e-12) << name << ", step " << step << ", element " << i;
    }
  }
};

class MuonPlugin : public ::testing::Test {
 protected:
  MuonPlugin() {
    set({});
    options_.set("hidden", std::string("block"));
    options_.set("beta1", kBeta1);
    options_.set("beta2", kBeta2);
    options_.set("eps", kEps);
    kernels_->start(*device_);
  }
  void set(const MuonRule& rule) {
    options_.set("momentum", rule.momentum);
    options_.set("nesterov", rule.nesterov);
    options_.set("iterations", static_cast<std::int64_t>(rule.iterations));
    options_.set("update_rms", rule.update_rms);
  }
  plugin::Instance<Optimizer> optimizer() {
    return plugin::create<Optimizer>(plugin::load(triax::test::plugin_file("optim-muon"), "optimizer"), context_);
  }
  void update(Optimizer& muon, std::span<const ParameterShard> shards, const StepScalars& scalars,
              double decay = kDecay) {
    std::vector<double> scratch(muon.scratch_bytes(shards) / sizeof(double), std::nan(""));
    muon.step(shards,
              {.scalars = &scalars,
               .weight_decay = decay,
               .groups = no_groups_,
               .scratch = std::as_writable_bytes(std::span(scratch)),
               .op = {*stream_, {}}},
              *kernels_);
  }

  /// Four steps: matrices that are wide, tall, square and fused, and parameters that are none of hidden layers.
  void follow_the_formulas(const MuonRule& rule) {
    set(rule);
    const auto muon = optimizer();
    std::deque<MuonParameter> hidden, others; // shards refer to them
    hidden.emplace_back("block 0/wide.weight", Shape{3, 5}, true);
    hidden.emplace_back("block 0/tall.weight", Shape{7, 2}, true);
    hidden.emplace_back("block 1/square.weight", Shape{4, 4}, true);
    hidden.emplace_back("block 1/fused.weight", Shape{3, 2, 4}, true);
    others.emplace_back("block 0/wide.bias", Shape{3}, false);
    others.emplace_back("block 1/fused.bias", Shape{3, 2}, false);
    others.emplace_back("block 1/row.weight", Shape{1, 4}, true);
    others.emplace_back("embedding/tokens.weight", Shape{5, 4}, true);
    std::vector<ParameterShard> shards;
    for (std::deque<MuonParameter>* list : {&hidden, &others})
      for (MuonParameter& of : *list) shards.push_back(of.shard());
    std::swap(shards[1], shards[5]); // the order of a stage mixes them
    muon->prepare(shards);
    StepScalars scalars{.lr = kLr, .clip = kClip};
    for (int step = 1; step <= 4; ++step) {
      scalars.step = step;
      update(*muon, shards, scalars);
      for (MuonParameter& of : hidden) of.expect_muon(rule);
      for (MuonParameter& of : others) of.expect_adamw(step);
      for (std::deque<MuonParameter>* list : {&hidden, &others})
        for (MuonParameter& of : *list) {
          of.expect_held(step);
          std::ranges::copy(sample_values(of.gradient.size(), 2 + step), of.gradient.begin());
        }
    }
  }

  Options options_, no_options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  PluginContext context_{options_, null_log(), layout_}, kernels_context_{no_options_, null_log(), layout_};
  std::unique_ptr<Device> device_ = make_host_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("compute");
  plugin::Instance<KernelSet> kernels_ = plugin::create<KernelSet>(
      plugin::load(triax::test::plugin_file("kernels-reference"), "kernels"), kernels_context_);
  const Groups no_groups_;
};

TEST_F(MuonPlugin, FollowsTheFormulas) {
  follow_the_formulas({});
}

TEST_F(MuonPlugin, FollowsTheFormulasWithOtherOptions) {
  follow_the_formulas({.momentum = 0.5, .nesterov = false, .iterations = 2, .update_rms = 0.75});
}

/// The update of a matrix with singular values from 1 to 0.05 is near an orthogonal one, so its elements have the root
/// mean square of AdamW's updates.
TEST_F(MuonPlugin, BringsSingularValuesNearOne) {
  const auto muon = optimizer();
  MuonParameter weight("block 0/weight", {2, 6}, true);
  const Values before = weight.master;
  weight.gradient = {1, 0, 0, 0, 0, 0, 0, 0.05, 0, 0, 0, 0};
  const std::vector<ParameterShard> shards{weight.shard()};
  muon->prepare(shards);
  update(*muon, shards, {.lr = 1, .clip = 1, .step = 1}, 0);
  Values change(before.size());
  for (std::size_t i = 0; i < change.size(); ++i) change[i] = (before[i] - weight.master[i]) / (0.2 * std::sqrt(6.0));
  for (const std::size_t diagonal : {std::size_t{0}, std::size_t{7}}) {
    EXPECT_GT(change[diagonal], 0.65);
    EXPECT_LT(change[diagonal], 1.25);
    change[diagonal] = 0;
  }
  for (const double rest : change) EXPECT_NEAR(rest, 0, 1e-12);
}

TEST_F(MuonPlugin, TheSizeOfAGradientDoesNotChangeTheUpdate) {
  Values first;
  for (const double factor : {1.0, 1024.0}) {
    const auto muon = optimizer();
    MuonParameter weight("block 0/weight", {3, 5}, true);
    for (double& value : weight.gradient) value *= factor;
    const std::vector<ParameterShard> shards{weight.shard()};
    muon->prepare(shards);
    update(*muon, shards, {.lr = kLr, .clip = kClip, .step = 1});
    if (first.empty()) first = weight.master;
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(weight.master[i], first[i], 1e-6);
  }
}

TEST_F(MuonPlugin, AMatrixWithoutGradientDecaysOnly) {
  const auto muon = optimizer();
  MuonParameter weight("block 0/weight", {3, 5}, true);
  const Values before = weight.master;
  std::ranges::fill(weight.gradient, 0);
  const std::vector<ParameterShard> shards{weight.shard()};
  muon->prepare(shards);
  update(*muon, shards, {.lr = kLr, .clip = kClip, .step = 1});
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_DOUBLE_EQ(weight.master[i], before[i] - kLr * kDecay * before[i]);
}

TEST_F(MuonPlugin, LayersAreHiddenByTheirNames) {
  for (const char* hidden : {"", "head", "block 1"}) {
    options_.set("hidden", std::string(hidden));
    const auto muon = optimizer();
    MuonParameter block("block 1/weight", {3, 5}, true), head("head/weight", {3, 5}, true);
    const std::vector<ParameterShard> shards{block.shard(), head.shard()};
    muon->prepare(shards);
    update(*muon, shards, {.lr = kLr, .clip = kClip, .step = 1});
    for (MuonParameter* of : {&block, &head}) {
      of->name.starts_with(hidden) ? of->expect_muon({}) : of->expect_adamw(1);
      of->expect_held(1);
    }
  }
}

TEST_F(MuonPlugin, ASkippedStepChangesNothing) {
  const auto muon = optimizer();
  MuonParameter weight("block 0/weight", {3, 5}, true), bias("block 0/bias", {3}, false);
  weight.gradient[4] = bias.gradient[1] = std::nan("");
  const std::vector<ParameterShard> shards{weight.shard(), bias.shard()};
  muon->prepare(shards);
  update(*muon, shards, {.lr = kLr, .clip = kClip, .skip = 1});
  for (const MuonParameter* of : {&weight, &bias}) of->expect_held(0);
}

TEST_F(MuonPlugin, WritesWorkingWeights) {
  const auto muon = optimizer();
  MuonParameter weight("block 0/weight", {3, 5}, true);
  std::vector<Bf16> working(15);
  ParameterShard shard = weight.shard();
  shard.working = {working.data(), DType::bf16, Shape{15}};
  muon->prepare({&shard, 1});
  update(*muon, {&shard, 1}, {.lr = kLr, .clip = kClip, .step = 1});
  for (std::size_t i = 0; i < working.size(); ++i)
    EXPECT_EQ(static_cast<double>(working[i]), static_cast<double>(Bf16(weight.master[i])));
}

TEST_F(MuonPlugin, DeclaresWhatItNeeds) {
  const auto muon = optimizer();
  EXPECT_EQ(muon->traits().state, (std::vector<std::string>{"momentum", "v"}));
  EXPECT_FALSE(muon->traits().elementwise);
  EXPECT_TRUE(muon->traits().may_be_sharded());
  EXPECT_TRUE(muon->supports({DType::f32}).empty());
  EXPECT_EQ(muon->supports({DType::bf16}).front().message, "optim-muon keeps master weights in fp32 or fp64, not bf16");
  MuonParameter weight("block 0/weight", {3, 40}, true), bias("block 0/bias", {120}, false);
  const ParameterShard of_weight = weight.shard(), of_bias = bias.shard();
  EXPECT_EQ(muon->scratch_bytes({&of_bias, 1}), 0U);
  EXPECT_EQ(muon->scratch_bytes({&of_weight, 1}), 2 * 1024U + 2 * 256U + 256U); // the Gram matrix is of 3 rows
}

TEST_F(MuonPlugin, ContinuesWithTheSameMatricesOnly) {
  const auto muon = optimizer();
  auto* const state = find_extension<SavedState>(*muon);
  ASSERT_NE(state, nullptr);
  const std::string saved = state->save();
  state->load(saved);
  EXPECT_EQ(state->save(), saved);
  options_.set("hidden", std::string("layer"));
  const auto other = optimizer();
  try {
    find_extension<SavedState>(*other)->load(saved);
    FAIL() << "load() must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "optimizer.hidden is \"layer\", but the state is of optimizer.hidden = \"block\"");
    EXPECT_EQ(error.hint(), "set optimizer.hidden to \"block\", or checkpoint.load to \"weights\"");
  }
  EXPECT_THROW(state->load("block"), Error);
}

TEST_F(MuonPlugin, RefusesDevicesThatItCannotUse) {
  const Refusals refusals = optimizer()->supports({DType::f32, DeviceKind::cuda});
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals.front().message, "optim-muon computes in host memory; the weights are on the device \"CUDA\"");
  EXPECT_EQ(refusals.front().hint, "use a kernel set for the host, or optim-adamw");
}

/// Neither Gram matrix of such a part is a sum over ranks.
TEST_F(MuonPlugin, RefusesMatricesThatTwoAxesCut) {
  layout_ = Layout({{"tensor", 2, Divides::tensors}, {"expert", 2, Divides::tensors}});
  const auto muon = optimizer();
  MuonParameter weight("block 0/weight", {4, 6}, true);
  weight.spec.cuts = {{"expert", 0, 0, 2}, {"tensor", 1, 0, 3}};
  weight.spec.local = {2, 3};
  const ParameterShard shard = weight.shard();
  try {
    muon->prepare({&shard, 1});
    FAIL() << "prepare() must throw";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.message().c_str(),
        "optim-muon: block 0/weight is divided by rows over expert and by columns over tensor; a matrix can be "
        "divided along one dimension only");
    EXPECT_EQ(error.hint(), "set parallel.expert or parallel.tensor to 1, or use optim-adamw");
  }
}

} // namespace
