// SPDX-License-Identifier: Apache-2.0
// A run that moves to other ranks and back: its losses, norms and evaluations are those of a run that never stopped,
// bit for bit with the same tensor and data sizes and microbatch size, else up to rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/sanitizers.hpp"
#include "train/resumed_run.hpp"

namespace triax {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using test::Where;
using ::testing::IsEmpty;

const char* const k1F1B = "\"sched-1f1b\"";
const char* const kInterleaved = "\"sched-interleaved\"";

class OtherRanks : public test::ResumedRun {
 protected:
  OtherRanks() {
    run_.keys["model.layers"] = "8";
    run_.keys["model.heads"] = "4";
    run_.keys["schedule.plugin"] = k1F1B;
    run_.keys["eval.every"] = "1";
    run_.keys["data.validation"] = "\"text\"";
  }

  std::vector<Json> records(const std::string& folder) const {
    std::vector<Json> out;
    std::istringstream lines(test::read_file(run_.folder() / folder / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) out.push_back(Json::parse(line));
    return out;
  }
  /// All numbers of the records that do not depend on time, as text with all bits.
  std::vector<std::string> bits(const std::string& folder) const {
    std::vector<std::string> out;
    for (const Json& record : records(folder)) {
      std::string& line = out.emplace_back();
      for (const char* key : {"step", "loss", "grad_norm", "lr", "eval_loss", "loss_scale", "skipped"})
        if (record.contains(key)) line += record[key].dump() + " ";
    }
    return out;
  }
  void copy(const std::string& from, const std::string& to) const {
    fs::remove_all(run_.folder() / to);
    fs::copy(run_.folder() / from, run_.folder() / to, fs::copy_options::recursive);
  }
  /// Losses, norms and evaluations differ from the other run's by at most `bound`, relatively.
  void expect_near(const std::string& folder, const std::string& other, double bound) const {
    const std::vector<Json> of = records(folder), expected = records(other);
    ASSERT_EQ(of.size(), expected.size());
    for (std::size_t i = 0; i < of.size(); ++i)
      for (const char* key : {"loss", "grad_norm", "eval_loss"}) {
        const double value = of[i][key], wanted = expected[i][key];
        EXPECT_LE(std::abs(value - wanted), bound * std::abs(wanted)) << key << " of step " << i + 1;
      }
  }

  const Where saved_{2, 2, 2};
};

/// Saved at step 2, continued to step 4 on each layout, and to step 5 where it began.
TEST_F(OtherRanks, OfTheSameSizesChangeNoBit) {
  ASSERT_THAT(train(saved_, 5, "whole"), IsEmpty());
  ASSERT_THAT(train(saved_, 2, "saved"), IsEmpty());
  for (const Where& where : std::vector<Where>{{1, 2, 2},
                                               {4, 2, 2, {{"schedule.plugin", kInterleaved}, {"parallel.chunks", "2"}}},
                                               {3, 2, 2, {{"parallel.split", "[2, 5, 1]"}}}}) {
    copy("saved", "run");
    ASSERT_THAT(train(where, 4), IsEmpty());
    ASSERT_THAT(train(saved_, 5), IsEmpty());
    EXPECT_EQ(bits("run"), bits("whole")) << where.pipeline;
    EXPECT_EQ(content("run", 5), content("whole", 5)) << where.pipeline;
    EXPECT_EQ(state("run", 5), state("whole", 5));
  }
}

using Bound = std::pair<const char*, double>;
constexpr Bound kSingle{"\"fp32\"", 1e-6}, kDouble{"\"fp64\"", 1e-13};

class LayoutsOfOtherSizes : public OtherRanks, public ::testing::WithParamInterface<Bound> {};

/// The bounds are some times the rounding of the type, 6e-8 and 1e-16: what is read wrongly differs by far more.
TEST_P(LayoutsOfOtherSizes, DifferByRounding) {
  const auto [precision, bound] = GetParam();
  run_.keys["train.precision"] = precision;
  ASSERT_THAT(train(saved_, 5, "whole"), IsEmpty());
  ASSERT_THAT(train(saved_, 2, "saved"), IsEmpty());
  for (const Where& where : std::vector<Where>{{1, 1, 1},
                                               {4, 1, 2, {{"schedule.plugin", kInterleaved}, {"parallel.chunks", "2"}}},
                                               {1, 4, 1},
                                               {3, 2, 1, {{"parallel.split", "[1, 4, 3]"}}},
                                               {1, 1, 2, {{"batch.micro", "2"}}}}) {
    copy("saved", "run");
    ASSERT_THAT(train(where, 4), IsEmpty());
    ASSERT_THAT(train(saved_, 5), IsEmpty());
    expect_near("run", "whole", bound);
  }
}

TEST_P(LayoutsOfOtherSizes, InAChainOfFiveDifferByRounding) {
  const auto [precision, bound] = GetParam();
  run_.keys["train.precision"] = precision;
  run_.keys["train.steps"] = "10";
  ASSERT_THAT(train({1, 1, 1}, 10, "whole"), IsEmpty());
  int step = 0;
  for (const Where& where : std::vector<Where>{saved_,
                                               {4, 1, 2, {{"schedule.plugin", kInterleaved}, {"parallel.chunks", "2"}}},
                                               {1, 4, 1},
                                               {3, 2, 1, {{"parallel.split", "[1, 4, 3]"}}},
                                               {1, 1, 4, {{"batch.micro", "2"}}}})
    ASSERT_THAT(train(where, step += 2), IsEmpty());
  expect_near("run", "whole", bound);
}

INSTANTIATE_TEST_SUITE_P(Precisions, LayoutsOfOtherSizes,
                         ::testing::ValuesIn(test::kSanitized ? std::vector{kSingle} : std::vector{kSingle, kDouble}));

/// The scale, its counters and the number of skipped steps are in the checkpoint.
TEST_F(OtherRanks, ContinueTheLossScale) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run_.keys["train.precision"] = "\"fp16\"";
  run_.keys["loss_scale.initial"] = "1e9"; // skips steps
  run_.keys["loss_scale.window_steps"] = "3";
  run_.keys["train.steps"] = "24";
  ASSERT_THAT(train(saved_, 24, "whole"), IsEmpty());
  ASSERT_THAT(train(saved_, 3), IsEmpty());
  ASSERT_THAT(train({4, 2, 2, {{"schedule.plugin", kInterleaved}, {"parallel.chunks", "2"}}}, 18), IsEmpty());
  copy("run", "saved");
  ASSERT_THAT(train({3, 2, 2, {{"parallel.split", "[2, 5, 1]"}}}, 24), IsEmpty());
  EXPECT_EQ(bits("run"), bits("whole"));
  EXPECT_EQ(state("run", 24), state("whole", 24));
  EXPECT_LT(state("run", 24).optimizer_steps, 24);
  for (const Where& where : std::vector<Where>{{1, 1, 1}, {1, 4, 1}}) {
    copy("saved", "run");
    ASSERT_THAT(train(where, 19), IsEmpty());
    EXPECT_EQ(records("run").back()["loss_scale"], state("saved", 18).loss_scale);
  }
}

} // namespace
} // namespace triax
