// SPDX-License-Identifier: Apache-2.0
// Costs of operations, layers and collectives, against formulas.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cost/cluster_file.hpp"
#include "cost/collective_cost.hpp"
#include "cost/layer_cost.hpp"
#include "cost/operation_cost.hpp"
#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/log.hpp"
#include "triax/options.hpp"
#include "triax/plugin.hpp"

namespace triax::cost {
namespace {

const CodeTraits kCode = *code_named("megatron-2021");

Cluster selene() {
  return *read_cluster(std::filesystem::path(TRIAX_SOURCE_DIR) / "clusters/a100-dgx.toml").cluster;
}

/// Kernels cost their bytes only, and products nothing: 1 byte per second.
Cluster memory_only() {
  Cluster out = selene();
  out.device.launch_s.value = out.device.host_launch_s.value = 0;
  out.device.memory_bandwidth.value = 1;
  out.device.narrow_head.value = 0;
  out.device.bandwidth_efficiency.value = out.device.score_efficiency.value = 1;
  return out;
}

TEST(OperationCost, ALargeProductTakesItsFlopsAtTheShareOfThePeak) {
  const Cluster cluster = selene();
  const Product large{1, 1 << 14, 1 << 14, 1 << 14, 2};
  const double n = 1 << 14, ideal = 2 * n * n * n / (312e12 * cluster.device.gemm_efficiency.value);
  const double seconds = OperationCost(cluster.device, kCode).of(large).seconds;
  EXPECT_GT(seconds, ideal);
  EXPECT_LT(seconds, 1.02 * ideal);
}

TEST(OperationCost, ASmallProductTakesAWaveOfTiles) {
  Cluster cluster = selene();
  cluster.device.launch_s.value = 0;
  cluster.device.memory_bandwidth.value = 1e30;
  cluster.device.tiles = {{128, 128, {1}}};
  const OperationCost costs(cluster.device, kCode);
  const double one = costs.of(Product{1, 1, 1, 4096, 2}).seconds;
  EXPECT_EQ(costs.of(Product{1, 128, 128 * 108, 4096, 2}).seconds, one);
  EXPECT_DOUBLE_EQ(costs.of(Product{1, 128, 128 * 216, 4096, 2}).seconds, 2 * one);
}

TEST(OperationCost, NeverRisesWithPeakOrBandwidth) {
  const Cluster base = selene();
  for (const std::int64_t size : {16, 200, 1024, 5000}) {
    const Product product{3, size, size, size, 2};
    const double before = OperationCost(base.device, kCode).of(product).seconds;
    Cluster faster = base;
    faster.device.peak_16bit.value *= 1.1;
    EXPECT_LE(OperationCost(faster.device, kCode).of(product).seconds, before);
    faster = base;
    faster.device.memory_bandwidth.value *= 1.1;
    EXPECT_LE(OperationCost(faster.device, kCode).of(product).seconds, before);
  }
}

/// Attention of kernels-fused (docs/adr/0014): one kernel forward, and two backward, which both read q, k, v and dout.
TEST(OperationCost, TiledAttentionMovesNoScores) {
  const Cluster cluster = memory_only();
  const OperationCost tiled(cluster.device, *code_named("triax")), stored(cluster.device, kCode);
  const TensorView heads(nullptr, DType::bf16, {512, 2, 8, 64});
  AttentionFwd forward;
  forward.o = forward.q = forward.k = forward.v = heads;
  AttentionBwd backward;
  backward.dq = backward.dk = backward.dv = backward.dout = backward.q = backward.k = backward.v = backward.o = heads;
  const OpCall forward_call{Op::attention_fwd, &forward}, backward_call{Op::attention_bwd, &backward};
  const double moved = 2 * 512 * 2 * 8 * 64, scores = 2 * 8 * 512 * 512; // bytes of q, and elements of the scores
  EXPECT_EQ(tiled.of(forward_call).kernels, 1);
  EXPECT_EQ(tiled.of(backward_call).kernels, 2);
  EXPECT_NEAR(tiled.of(forward_call).seconds, 4 * moved, 1e-3);
  EXPECT_NEAR(tiled.of(backward_call).seconds, 11 * moved, 1e-3);
  EXPECT_GT(stored.of(forward_call).seconds, 4 * moved + 2 * scores);
  // Its products take the time of their operations.
  Cluster slow = memory_only();
  slow.device.memory_bandwidth.value = 1e30;
  slow.device.peak_16bit.value = 1;
  slow.device.fill.value = 0;
  slow.device.gemm_efficiency.value = 1;
  slow.device.tiles = {{64, 64, {1}}};
  const OperationCost compute(slow.device, *code_named("triax"));
  const double product = 2.0 * scores * 64;
  const double forward_s = compute.of(forward_call).seconds, backward_s = compute.of(backward_call).seconds;
  EXPECT_NEAR(forward_s, 2 * product, 1e-9 * product);
  EXPECT_NEAR(backward_s, 7 * product, 1e-9 * product);
}

/// Bytes of a product, each matrix once.
double product_bytes(double m, double n, double k) {
  return 2 * (m * n + m * k + k * n);
}

// The formulas of a GPT block in 16 bits, as PyTorch and the fused kernels of Megatron-LM run it: 22 E + 32 E / t bytes
// of elementwise operations and 9 A of scores forward, 46 E + 54 E / t, 11 A and 6 bytes per weight backward.
TEST(LayerCost, ABlockMovesTheBytesOfItsFormula) {
  constexpr double h = 64, s = 32, b = 2, a = 4, d = h / a, rows = b * s;
  Options options;
  for (const auto& [key, value] :
       {std::pair("layers", 1), {"hidden", 64}, {"heads", 4}, {"sequence", 32}, {"inner", 0}})
    options.set(key, std::int64_t{value});
  options.set("norm_eps", 1e-5);
  options.set("dropout", 0.1);
  const Layout layout = Layout::ptd(1, 1, 1);
  const PluginContext plugin{options, null_log(), layout};
  const auto model = plugin::create<Model>(plugin::load(test::plugin_file("model-gpt"), "model"), plugin);
  const LayerContext context{
      .layout = layout, .micro = 2, .vocab = 11, .compute = DType::bf16, .sequence = 32, .max_rows = 32};
  const std::unique_ptr<Layer> block = model->layer(1, context);
  const Cluster cluster = memory_only();
  const LayerTime time = LayerCost(cluster, kCode).of(*block, context);

  const double elements = rows * h, scores = b * a * s * s, weights = 12 * h * h, statistics = 8 * rows;
  const double linears = product_bytes(rows, 3 * h, h) + product_bytes(rows, h, h) + 2 * product_bytes(rows, 4 * h, h);
  const double attention = b * a * product_bytes(s, s, d);
  const double norm_weights = 4 * h, norm_gradients = 16 * h; // read and written
  EXPECT_NEAR(time.forward.compute_s, linears + 2 * attention + 54 * elements + 9 * scores + norm_weights + statistics,
              1e-3);
  EXPECT_NEAR(
      time.input.compute_s + time.weight.compute_s,
      2 * linears + 4 * attention + 100 * elements + 11 * scores + 6 * weights + 2 * (norm_gradients + statistics),
      1e-3);
  // Two norms, and GELU of 4 h columns: each reads and writes its tensor.
  EXPECT_NEAR(LayerCost(cluster, kCode).of_recompute(*block, context).pass.compute_s,
              24 * elements + 2 * (norm_weights + statistics), 1e-3);
  EXPECT_EQ(time.forward.tensor_s, 0);
  EXPECT_EQ(time.parameters, weights + 13 * h);
  EXPECT_EQ(time.boundary_bytes, 2 * elements);
}

TEST(CollectiveCost, ARingMovesTwiceItsBytesAtTheBusBandwidth) {
  const Cluster cluster = selene();
  const CollectiveCost costs(cluster);
  const double bytes = 16e9, seconds = costs.seconds(Collective::Kind::all_reduce, bytes, placed(8, 1, 8));
  EXPECT_NEAR(seconds, 2 * bytes * 7 / 8 / 235e9, 1e-3 * seconds);
  EXPECT_EQ(costs.seconds(Collective::Kind::all_reduce, bytes, placed(1, 1, 8)), 0);
  EXPECT_DOUBLE_EQ(costs.seconds(Collective::Kind::all_gather, bytes / 8, placed(8, 1, 8)),
                   costs.seconds(Collective::Kind::reduce_scatter, bytes, placed(8, 1, 8)));
}

TEST(CollectiveCost, GroupsArePlacedOnNodes) {
  EXPECT_EQ(placed(8, 1, 8), (GroupShape{8, 1, 1}));
  EXPECT_EQ(placed(32, 1, 8), (GroupShape{32, 4, 1}));
  EXPECT_EQ(placed(16, 8, 8), (GroupShape{16, 16, 8}));
  EXPECT_EQ(placed(16, 4, 8), (GroupShape{16, 8, 4}));
  EXPECT_EQ(placed(2, 64, 8), (GroupShape{2, 2, 8}));
}

} // namespace
} // namespace triax::cost
