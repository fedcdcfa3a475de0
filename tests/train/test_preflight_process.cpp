// SPDX-License-Identifier: Apache-2.0
// Preflight in a child process: same result, and an error for a plugin that ends or blocks the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/preflight_process.hpp"
#include "train/preflight_run.hpp"

namespace triax {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct WarningLog : Log {
  bool enabled(LogLevel level) const noexcept override { return level >= LogLevel::warn; }
  void write(LogLevel, std::string_view text) noexcept override { lines.emplace_back(text); }
  std::vector<std::string> lines;
};

class PreflightProcess : public ::testing::Test {
 protected:
  PreflightProcess() {
    test::prepare_text(run_, std::string(400, 'x'));
    run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  }
  train::CheckedRun check(const plugin::CallLimits& limits = {}) const {
    return train::preflight_in_child(run_.config(), log_,
                                     {std::nullopt,
                                      [](const train::Placement& on) {
                                        return train::CheckedDevices{0, on.ranks};
                                      }},
                                     limits);
  }
  /// The single error for a scheduler that fails.
  std::string refusal(const std::string& where, const std::string& how, const plugin::CallLimits& limits = {}) {
    run_.keys["schedule.plugin"] = "\"sched-crashing\"";
    run_.keys["schedule.where"] = '"' + where + '"';
    run_.keys["schedule.how"] = '"' + how + '"';
    const train::CheckedRun checked = check(limits);
    if (checked.preflight.refusals.size() != 1) return "not one refusal";
    EXPECT_THAT(checked.preflight.refusals[0].hint, HasSubstr("this is a defect of the plugin"));
    return checked.preflight.refusals[0].message;
  }
  test::TinyRun run_;
  mutable WarningLog log_;
};

TEST_F(PreflightProcess, AnswersAsPreflightDoes) {
  run_.keys["parallel.pipeline"] = run_.keys["parallel.data"] = "2";
  const config::RunConfig config = run_.config();
  const train::Placement placement = train::choose_placement(config);
  const train::Preflight here = train::preflight(config, placement, null_log());
  const train::CheckedRun there = check();
  EXPECT_EQ(there.placement.ranks, placement.ranks);
  EXPECT_EQ(there.placement.cores, placement.cores);
  EXPECT_EQ(there.placement.ranks_are_threads, placement.ranks_are_threads);
  EXPECT_TRUE(there.preflight.refusals.empty());
  EXPECT_EQ(there.preflight.parameters, here.parameters);
  EXPECT_EQ(there.preflight.device, here.device);
  ASSERT_EQ(there.preflight.plans.size(), here.plans.size());
  for (std::size_t i = 0; i < here.plans.size(); ++i) {
    const train::RankPlan &of_child = there.preflight.plans[i], &own = here.plans[i];
    EXPECT_EQ(of_child.ranks, own.ranks);
    EXPECT_EQ(of_child.pipeline, own.pipeline);
    EXPECT_EQ(of_child.tensor, own.tensor);
    EXPECT_EQ(of_child.layers, own.layers);
    ASSERT_EQ(of_child.memory.size(), own.memory.size());
    for (std::size_t row = 0; row < own.memory.size(); ++row) {
      EXPECT_EQ(of_child.memory[row].what, own.memory[row].what);
      EXPECT_EQ(of_child.memory[row].bytes, own.memory[row].bytes);
    }
  }
  ASSERT_EQ(there.preflight.corpora.size(), here.corpora.size());
  EXPECT_EQ(there.preflight.corpora[0].path, here.corpora[0].path);
  EXPECT_EQ(there.preflight.corpora[0].epochs, here.corpora[0].epochs);
}

TEST_F(PreflightProcess, RefusalsKeepTheirHints) {
  run_.keys["model.heads"] = "3";
  const Refusals refusals = check().preflight.refusals;
  ASSERT_FALSE(refusals.empty());
  EXPECT_THAT(refusals[0].message, HasSubstr("model.heads = 3"));
  EXPECT_NE(refusals[0].hint, "");
}

TEST_F(PreflightProcess, APluginThatDiesIsRefusedByName) {
  const std::string name = "schedule.plugin \"sched-crashing\": ", at = ", file " TEST_PLUGINS "/sched-crashing.so";
  const std::string crashed = " crashed with SIGSEGV (Segmentation fault)";
  EXPECT_EQ(refusal("create", "crash"), name + "its constructor" + crashed + at);
  EXPECT_EQ(refusal("supports", "crash"), name + "supports()" + crashed + at);
  EXPECT_EQ(refusal("rows", "crash"), name + "rows()" + crashed + at);
  EXPECT_EQ(refusal("create", "exit"), name + "its constructor called exit(3)" + at);
  EXPECT_EQ(refusal("destroy", "crash"), name + "its destructor" + crashed + at);
}

TEST_F(PreflightProcess, APluginThatDoesNotReturnIsRefusedByName) {
  const plugin::CallLimits limits{std::chrono::milliseconds(500), std::chrono::milliseconds(1000)};
  const std::string name = "schedule.plugin \"sched-crashing\": ", at = ", file " TEST_PLUGINS "/sched-crashing.so";
  EXPECT_EQ(refusal("create", "loop", limits), name + "its constructor did not return within 0.5 s" + at);
  EXPECT_EQ(refusal("rows", "loop", limits), name + "rows() did not return within 1 s" + at);
}

TEST_F(PreflightProcess, ASlowCallIsReportedOnceWhileItRuns) {
  const plugin::CallLimits limits{std::chrono::milliseconds(500), std::chrono::milliseconds(1000),
                                  std::chrono::milliseconds(100)};
  EXPECT_NE(refusal("rows", "loop", limits), "");
  EXPECT_THAT(log_.lines,
              ElementsAre("schedule.plugin \"sched-crashing\": rows() has not returned for 0.1 s; the check "
                          "waits up to 1 s"));
}

} // namespace
} // namespace triax
