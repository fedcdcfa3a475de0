// SPDX-License-Identifier: Apache-2.0
// What ranks send over each axis and kind of link: by axis as triax check says, and on the links between the peers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/load.hpp"
#include "cost/planned_run.hpp"
#include "plan/link_traffic.hpp"
#include "train/preflight.hpp"
#include "train/rank_setup.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plan {
namespace {

class LinkTraffic : public testing::Test {
 protected:
  LinkTraffic() : bound_(activity_) {
    run_ = config::load(config::TomlText{kPlannedRun, "run.toml", "."}, {}, {}, config::Purpose::plan).run.value();
  }

  RankActivity activity_;
  RankActivity::Binding bound_;
  config::RunConfig run_;
};

/// Sums and largest values of what ranks send over each axis, of triax check.
std::map<std::string, SentBytes> sent_by_axis(const train::Preflight& checked) {
  std::map<std::string, SentBytes> out;
  for (const train::RankPlan& plan : checked.plans)
    for (const std::vector<report::GroupTraffic>& of_rank : plan.traffic)
      for (const report::GroupTraffic& of : of_rank) {
        out[of.group].all += of.bytes_out;
        out[of.group].most = std::max(out[of.group].most, of.bytes_out);
      }
  return out;
}

void compare_with_check(const config::RunConfig& run, const std::string& layout) {
  const train::Preflight checked = train::preflight(run, train::choose_placement(run), null_log());
  ASSERT_TRUE(checked.refusals.empty()) << layout << checked.refusals.begin()->message;
  const std::map<std::string, SentBytes> expected = sent_by_axis(checked);
  const int ranks = train::layout_of(run).world_size();
  for (const int devices : {1, 2, 3, 4, 8, 16}) {
    const std::vector<AxisTraffic> found = link_traffic(run, devices, null_log());
    ASSERT_EQ(found.size(), expected.size());
    for (const AxisTraffic& of : found) {
      const SentBytes& sent = expected.at(of.axis);
      EXPECT_EQ(of.sent.all, sent.all) << of.axis << layout;
      EXPECT_EQ(of.sent.most, sent.most) << of.axis << layout;
      EXPECT_EQ(of.by_link[0].all + of.by_link[1].all, sent.all) << of.axis << layout;
      EXPECT_TRUE(devices > 1 || of.by_link[0].all == 0) << of.axis << layout;
      EXPECT_TRUE(devices < ranks || of.by_link[1].all == 0) << of.axis << layout;
    }
  }
}

TEST_F(LinkTraffic, ByAxisIsThatOfTriaxCheck) {
  for (const auto& [p, t, d] : {std::tuple(1, 1, 1), {2, 1, 1}, {1, 4, 1}, {1, 1, 8}, {2, 2, 2}, {3, 2, 1}, {1, 4, 2}})
    for (const char* const shard : {"none", "states", "parameters"})
      for (const bool sequence : {false, true}) {
        config::RunConfig run = run_;
        run.parallel.pipeline = p;
        run.parallel.tensor = t;
        run.parallel.data = d;
        run.parallel.sequence = sequence;
        run.parallel.scatter_gather = !sequence;
        run.optimizer_core.shard = shard;
        compare_with_check(run, text(" p {} t {} d {} shard {} sequence {}", p, t, d, shard, sequence));
      }
}

/// Ranks between the first and the last have one dry run if they have equal layers and actions. Their peers differ.
TEST_F(LinkTraffic, PipelineRanksThatSendAsMuchArePlannedOnce) {
  const struct {
    const char* schedule;
    int pipeline, chunks;
  } kCases[] = {{"sched-1f1b", 8, 1}, {"sched-interleaved", 4, 2}, {"sched-zb-v", 4, 2}, {"sched-breadth-first", 4, 2}};
  for (const auto& of : kCases)
    for (const char* const shard : {"gradients", "parameters"})
      for (const char* const recompute : {"none", "full"}) {
        const config::LoadResult loaded = config::load(config::TomlText{kPlannedRun, "run.toml", "."},
                                                       {{"model.layers", "8"},
                                                        {"batch.global", "24"},
                                                        {"schedule.plugin", of.schedule},
                                                        {"parallel.pipeline", text("{}", of.pipeline)},
                                                        {"parallel.chunks", text("{}", of.chunks)},
                                                        {"parallel.data", "2"},
                                                        {"memory.recompute", recompute},
                                                        {"optimizer.shard", shard}},
                                                       {}, config::Purpose::plan);
        ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
        compare_with_check(*loaded.run, text(" {} shard {} recompute {}", of.schedule, shard, recompute));
      }
}

/// With the automatic number of blocks, the groups of a rank depend on its microbatches in flight, and each group
/// gathers its inputs. Pipeline ranks 1 to 6 have equal layers and actions.
TEST_F(LinkTraffic, PipelineRanksWithOtherGroupsArePlannedApart) {
  const config::LoadResult loaded = config::load(config::TomlText{kPlannedRun, "run.toml", "."},
                                                 {{"model.layers", "128"},
                                                  {"batch.global", "16"},
                                                  {"parallel.pipeline", "8"},
                                                  {"parallel.tensor", "2"},
                                                  {"memory.recompute", "full"},
                                                  {"memory.recompute_layers", "0"},
                                                  {"memory.partition_activations", "true"}},
                                                 {}, config::Purpose::plan);
  ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
  const config::RunConfig& run = *loaded.run;
  const Layout layout = train::layout_of(run);
  const train::RankPlugins plugins(run, layout, 0, 1, null_log());
  const Model& model = plugins.model();
  const train::Programs programs = train::lower_programs(run, layout, plugins, plugins.rows());
  const auto group_of = [&](int rank) {
    return train::recompute_group(run, model, train::layer_context(run, model, layout, 0),
                                  programs.training[static_cast<std::size_t>(rank)], rank,
                                  plugins.kernels().device_kind());
  };
  ASSERT_NE(group_of(1), group_of(6));
  compare_with_check(run, " automatic groups");
}

/// Of 250 tokens, the last of four tensor ranks has fewer rows than the others.
TEST_F(LinkTraffic, TensorRanksWithEqualLayersArePlannedOnce) {
  run_.parallel.pipeline = 2;
  run_.parallel.tensor = 4;
  run_.parallel.data = 2;
  const Layout layout = train::layout_of(run_);
  const train::RankPlugins plugins(run_, layout, 0, 1, null_log());
  const train::Programs programs = train::lower_programs(run_, layout, plugins, plugins.rows());
  const train::Placement placement = train::choose_placement(run_);
  const std::vector<int> all = {0, 1};
  const train::Preflight each = train::plan_under(run_, placement, null_log(), programs, all, train::PlannedRanks::all),
                         some = train::plan_under(run_, placement, null_log(), programs, all,
                                                  train::PlannedRanks::all_that_differ);
  ASSERT_TRUE(each.refusals.empty() && some.refusals.empty());
  EXPECT_EQ(each.plans.size(), 8U);
  EXPECT_LT(some.plans.size(), 8U);
  const auto by_rank = [](const train::Preflight& checked) {
    std::map<int, std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>>> out;
    for (const train::RankPlan& plan : checked.plans)
      for (std::size_t at = 0; at < plan.ranks.size(); ++at)
        for (const report::GroupTraffic& of : plan.traffic[at])
          out[plan.ranks[at]].emplace_back(of.group, of.ops, of.bytes_out, of.bytes_in);
    return out;
  };
  EXPECT_EQ(by_rank(some).size(), 16U);
  EXPECT_EQ(by_rank(some), by_rank(each));
}

/// p = 2, t = 2, d = 2: of nodes with two devices, tensor groups are on one; with four, pipeline ranks are apart.
TEST_F(LinkTraffic, IsOnTheLinksBetweenThePeers) {
  run_.parallel.pipeline = run_.parallel.tensor = run_.parallel.data = 2;
  const auto is_inside = [&](int devices) {
    std::map<std::string, bool> out;
    for (const AxisTraffic& of : link_traffic(run_, devices, null_log())) {
      EXPECT_TRUE(of.by_link[0].all == 0 || of.by_link[1].all == 0) << of.axis;
      out[of.axis] = of.by_link[0].all > 0;
    }
    return out;
  };
  EXPECT_THAT(is_inside(2), testing::IsSupersetOf({std::pair("tensor", true), {"data", false}, {"pipeline", false}}));
  EXPECT_THAT(is_inside(4), testing::IsSupersetOf({std::pair("tensor", true), {"data", true}, {"pipeline", false}}));
}

/// Of four pipeline ranks on two nodes, the middle ones send activations one way and gradients the other.
TEST_F(LinkTraffic, TransfersOfARankCanBeOnBothKindsOfLink) {
  run_.parallel.pipeline = 4;
  const std::vector<AxisTraffic> found = link_traffic(run_, 2, null_log());
  ASSERT_EQ(found.size(), 1u);
  constexpr double kBoundary = 16 * 32 * 64 * 2; // of a step, in one direction, in bf16
  constexpr double kTied = 250 * 64 * 4;         // gradient of the embedding, from the last to the first rank and back
  const auto is_near = [](std::uint64_t bytes, double expected) { // norm and losses are small
    EXPECT_NEAR(static_cast<double>(bytes), expected, 0.02 * expected);
  };
  is_near(found[0].by_link[0].all, 4 * kBoundary); // of two boundaries, in both directions
  is_near(found[0].by_link[1].all, 2 * kBoundary + 2 * kTied);
  is_near(found[0].by_link[0].most, kBoundary);
  is_near(found[0].sent.most, 2 * kBoundary);
}

} // namespace
} // namespace triax::plan
