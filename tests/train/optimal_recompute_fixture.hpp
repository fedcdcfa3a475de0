// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of memory.recompute = "optimal": tiny runs within budgets of activations. Without the solver,
// the tests are skipped.
//
// Threads: those of the ranks of a run, which it joins.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/integer_program.hpp"
#include "train/preflight.hpp"
#include "train/tiny_ranks.hpp"

namespace triax::test {

inline std::uint64_t activation_bytes(const train::RankPlan& plan) {
  std::uint64_t out = 0;
  for (const executor::ActivationPart& part : plan.activations) out += part.total();
  return out;
}

inline train::Preflight plan_within(const TinyRun& run) {
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  return train::preflight(config, train::choose_placement(config), null_log());
}

/// Of the rank that needs most.
inline std::uint64_t most_activations(const TinyRun& run) {
  const train::Preflight plan = plan_within(run);
  for (const Refusal& refusal : plan.refusals) ADD_FAILURE() << refusal.message;
  std::uint64_t out = 0;
  for (const train::RankPlan& of : plan.plans) out = std::max(out, activation_bytes(of));
  return out;
}

class OptimalRecompute : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string error = cost::integer_solver_error(); !error.empty()) GTEST_SKIP() << error;
  }

  static void set_budget(TinyRun& run, std::uint64_t bytes, const std::string& recompute = "\"optimal\"") {
    run.keys["memory.recompute"] = recompute;
    run.keys["memory.activation_budget"] = text("\"{} B\"", bytes);
  }
  static void unset_budget(TinyRun& run) {
    run.keys["memory.recompute"] = "\"none\"";
    run.keys.erase("memory.activation_budget");
  }

  /// The least budget that is accepted, which the refusal of one byte names. Leaves the key of one byte in the run.
  static std::uint64_t least_budget(TinyRun& run, const std::string& recompute = "\"optimal\"") {
    set_budget(run, 1, recompute);
    const train::Preflight plan = plan_within(run);
    if (plan.refusals.size() != 1) {
      ADD_FAILURE() << plan.refusals.size() << " refusals";
      return 0;
    }
    const std::string &message = plan.refusals.front().message, before = " need ";
    EXPECT_THAT(message, ::testing::HasSubstr("memory.activation_budget = \"1 B\": the activations of rank "));
    EXPECT_EQ(plan.refusals.front().keys, std::vector<std::string>{"memory.activation_budget"});
    return std::stoull(message.substr(message.find(before) + before.size()));
  }

  /// From the least memory to that of "none".
  static std::vector<std::uint64_t> budgets(TinyRun& run, int count, const std::string& recompute = "\"optimal\"") {
    const std::uint64_t least = least_budget(run, recompute);
    unset_budget(run);
    const std::uint64_t most = most_activations(run);
    EXPECT_LT(least, most);
    std::vector<std::uint64_t> out;
    for (int i = 0; i < count; ++i)
      out.push_back(least + (most - least) * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(count - 1));
    return out;
  }

  /// The budget is kept, and each rank allocates what is planned.
  static void expect_planned_memory(const TinyRun& run) {
    const config::RunConfig config = run.config();
    const train::Preflight plan = plan_within(run);
    for (const Refusal& refusal : plan.refusals) ADD_FAILURE() << refusal.message;
    const Layout layout = train::layout_of(config);
    std::vector<std::vector<train::MemoryRow>> memory(static_cast<std::size_t>(layout.world_size()));
    run_ranks(config, layout,
              [&memory](train::Rank& rank, int index) { memory.at(static_cast<std::size_t>(index)) = rank.memory(); });
    for (const train::RankPlan& of : plan.plans) {
      if (config.memory.recompute.of(of.pipeline) == "optimal") { // chunks have one value
        EXPECT_LE(activation_bytes(of), config.memory.activation_budget);
      }
      const std::vector<train::MemoryRow>& used = memory[static_cast<std::size_t>(of.ranks.front())];
      ASSERT_EQ(used.size(), of.memory.size());
      for (std::size_t row = 0; row < used.size(); ++row)
        EXPECT_EQ(used[row].bytes, of.memory[row].bytes) << used[row].what << " of rank " << of.ranks.front();
    }
  }

  static void expect_bits_of_none(TinyRun& run, int count = 4, const std::string& recompute = "\"optimal\"") {
    const std::vector<std::uint64_t> tried = budgets(run, count, recompute);
    unset_budget(run);
    const std::vector<RankTrace> none = train_ranks(run, 2);
    for (const std::uint64_t budget : tried) {
      SCOPED_TRACE(text("budget {}", budget));
      set_budget(run, budget, recompute);
      const std::vector<RankTrace> optimal = train_ranks(run, 2);
      ASSERT_EQ(optimal.size(), none.size());
      for (std::size_t rank = 0; rank < optimal.size(); ++rank) {
        EXPECT_EQ(optimal[rank].trace, none[rank].trace) << rank;
        EXPECT_EQ(optimal[rank].weights, none[rank].weights) << rank;
        EXPECT_EQ(optimal[rank].held_out, none[rank].held_out) << rank;
      }
    }
  }
};

} // namespace triax::test
