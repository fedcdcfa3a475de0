// SPDX-License-Identifier: Apache-2.0
// What ranks keep and save: together the whole model once, equal to that of other layouts; and optimizers that need
// values of whole parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;

/// Global tensors by "parameter name", for example "block 0/mlp.up.weight m".
using Saved = std::map<std::string, std::vector<double>>;

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

double element(const TensorView& view, std::int64_t at) {
  return view.dtype() == DType::f64 ? view.as<double>()[at] : static_cast<double>(view.as<float>()[at]);
}

/// Copies a box from the elements of `view` from `first` on.
void put(std::vector<double>& whole, const executor::Box& box, const Shape& global, const TensorView& view,
         std::int64_t first) {
  const int last = global.rank() - 1;
  const std::int64_t width = box.size[last], rows = box.size.elements() / width;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row, index = box.begin[last], stride = global[last];
    for (int dim = last - 1; dim >= 0; --dim) {
      index += (box.begin[dim] + rest % box.size[dim]) * stride;
      rest /= box.size[dim];
      stride *= global[dim];
    }
    for (std::int64_t i = 0; i < width; ++i) {
      double& held = whole.at(static_cast<std::size_t>(index + i));
      EXPECT_TRUE(std::isnan(held)) << "saved twice";
      held = element(view, first + row * width + i);
    }
  }
}

void save(const train::Rank& rank, Saved& out) {
  for (const executor::KeptTensor& tensor : rank.kept()) {
    std::vector<double>& whole = out[tensor.parameter + " " + tensor.name];
    if (whole.empty()) whole.assign(static_cast<std::size_t>(tensor.spec->global.elements()), kUnset);
    for (const executor::Box& box : executor::boxes_of(*tensor.spec, tensor.saved.first, tensor.saved.count))
      put(whole, box, tensor.spec->global, tensor.view, tensor.saved.first - tensor.held.first + box.offset);
  }
}

Saved saved_by(const config::RunConfig& config, const Layout& layout, int steps) {
  Saved out;
  std::mutex mutex;
  test::run_ranks(config, layout, [&](train::Rank& rank, int) {
    for (int step = 0; step < steps; ++step) rank.step();
    const std::lock_guard lock(mutex);
    save(rank, out);
  });
  for (const auto& [name, values] : out)
    for (const double value : values) EXPECT_FALSE(std::isnan(value)) << name << ": an element is saved by no rank";
  return out;
}

Saved saved_by(const TinyRun& run, int steps) {
  const config::RunConfig config = run.config();
  return saved_by(config, train::layout_of(config), steps);
}

void expect_near(const Saved& one, const Saved& other) {
  ASSERT_EQ(one.size(), other.size());
  for (const auto& [name, values] : one) {
    const std::vector<double>& others = other.at(name);
    ASSERT_EQ(values.size(), others.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], others[i], 1e-9) << name << " element " << i;
  }
}

/// Over 13 tokens, so that tensor ranks have padding; a model of 4 blocks, so that data ranks share parameters.
TEST(KeptState, OfAllRanksIsTheWholeModelOnce) {
  TinyRun run;
  run.keys["train.precision"] = "\"fp64\""; // so that rounding hides no mistake
  run.keys["model.layers"] = "4";
  const Saved one = saved_by(run, 2);
  EXPECT_TRUE(one.contains("block 3/mlp.up.weight master"));
  EXPECT_TRUE(one.contains("embedding/tokens.weight v"));
  run.keys["parallel.tensor"] = "2";
  run.keys["parallel.data"] = "2";
  const Saved square = saved_by(run, 2);
  expect_near(one, square);
  run.keys["parallel.pipeline"] = "2";
  EXPECT_EQ(saved_by(run, 2), square) << "the pipeline size changes no bit";
  run.keys["parallel.sequence"] = "true"; // gradients of norms and positions are added over two axes
  expect_near(one, saved_by(run, 2));
}

/// One of its parameters is cut by two axes. On 32 ranks.
TEST(KeptState, OfAModelThatIsCutOverSeveralAxesIsTheWholeModelOnce) {
  TinyRun run;
  test::use_divided_model(run);
  run.keys["optimizer.momentum"] = "0.5";
  const Saved one = saved_by(run, 3);
  const Layout layout = test::divide_over_all_axes(run);
  for (const char* shard : {"none", "states", "gradients", "parameters"}) {
    run.keys["optimizer.shard"] = text("\"{}\"", shard);
    EXPECT_EQ(saved_by(test::with_axes(run, {"context", "expert"}), layout, 3), one) << shard;
  }
}

/// optim-trust: a ratio of a whole parameter, over the ranks that have parts of it.
TEST(OptimizerShards, AreEnoughForValuesOfWholeParameters) {
  TinyRun run;
  run.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run.keys["train.precision"] = "\"fp64\"";
  run.keys["optimizer.plugin"] = "\"optim-trust\"";
  run.keys["optimizer.weight_decay"] = "0";
  const Saved one = saved_by(run, 3);
  run.keys["parallel.tensor"] = "2";
  const Saved split = saved_by(run, 3);
  expect_near(one, split);
  run.keys["parallel.pipeline"] = "2";
  EXPECT_EQ(saved_by(run, 3), split) << "steps of one stage at a time change no bit";
}

/// optim-lamb: the norms of a parameter are those of the global tensor. Over 13 tokens, so that tensor ranks have
/// padding.
TEST(OptimizerShards, AddOverDataRanksTheValuesOfWholeParameters) {
  TinyRun run;
  run.keys["train.precision"] = "\"fp64\"";
  run.keys["model.layers"] = "4";
  run.keys["optimizer.plugin"] = "\"optim-lamb\"";
  run.keys["optimizer.max_trust_ratio"] = "1000"; // so that no bound hides a wrong norm
  const Saved one = saved_by(run, 3);
  run.keys["parallel.data"] = "2";
  expect_near(one, saved_by(run, 3));
  for (const char* tensor : {"1", "2"}) {
    run.keys["parallel.tensor"] = tensor;
    run.keys["parallel.pipeline"] = "1";
    run.keys["optimizer.shard"] = "\"none\"";
    const Saved whole = saved_by(run, 3);
    expect_near(one, whole);
    for (const char* shard : {"states", "gradients", "parameters"}) {
      run.keys["optimizer.shard"] = text("\"{}\"", shard);
      EXPECT_EQ(saved_by(run, 3), whole) << shard << ", tensor size " << tensor;
    }
    run.keys["parallel.pipeline"] = "2";
    EXPECT_EQ(saved_by(run, 3), whole) << "steps of one stage at a time change no bit";
  }
  run.keys["parallel.sequence"] = "true"; // gradients of norms and positions are added over two axes
  expect_near(one, saved_by(run, 3));
}

/// optim-muon: the update of a matrix is that of the global one. In model-gpt, the three parts of qkv are cut by rows
/// and the projections by columns; model-llama has gated and grouped matrices.
TEST(OptimizerShards, AreEnoughForUpdatesOfWholeMatrices) {
  for (const bool is_llama : {false, true}) {
    TinyRun run;
    if (is_llama) run.use_llama(2);
    run.keys["train.precision"] = "\"fp64\"";
    run.keys["model.layers"] = "4";
    run.keys["optimizer.plugin"] = "\"optim-muon\"";
    const Saved one = saved_by(run, 3);
    run.keys["parallel.data"] = "2";
    for (const char* tensor : {"1", "2"}) {
      run.keys["parallel.tensor"] = tensor;
      run.keys["parallel.pipeline"] = "1";
      run.keys["optimizer.shard"] = "\"none\"";
      const Saved whole = saved_by(run, 3);
      expect_near(one, whole);
      for (const char* shard : {"states", "gradients", "parameters"}) {
        run.keys["optimizer.shard"] = text("\"{}\"", shard);
        EXPECT_EQ(saved_by(run, 3), whole) << shard << ", tensor size " << tensor;
      }
      run.keys["parallel.pipeline"] = "2";
      EXPECT_EQ(saved_by(run, 3), whole) << "steps of one stage at a time change no bit";
    }
  }
}

} // namespace
} // namespace triax
