// SPDX-License-Identifier: Apache-2.0
// Recompute::optimal: the views of chosen steps, the memory of what is dropped, and wrong choices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/state_of.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

using test::note;
using test::sample_model;
using test::SampleModel;
using test::SampleRank;
using test::texts;
using ::testing::HasSubstr;

/// `mid` makes i from its input, and w from i.
SampleModel model_of_steps() {
  SampleModel model = sample_model();
  for (const std::size_t block : {1, 2}) model.specs[block].steps = {{"step-i", {1}, {}}, {"step-w", {2}, {1}}};
  return model;
}

SampleRank rank_of_steps(const SampleModel& model, const std::string& row, const executor::ChosenSteps& of_mid,
                         int microbatches = 2) {
  return SampleRank(model, 1, microbatches, row, {}, Layout::ptd(1, 1, 1), Recompute::optimal, schedule::Sharding::none,
                    {{}, of_mid});
}

/// f exists while steps run, and not in the backward. A tensor that is not dropped stays in its slot.
TEST(RecomputeSteps, ChosenStepsRunBeforeTheBackward) {
  const SampleModel model = model_of_steps();
  SampleRank rank = rank_of_steps(model, "0F0 0F1 0B0 0I1 0W1", {{0, 1}, {2}});
  rank.allocate();
  rank.walk(rank.training);
  std::vector<std::string> of_mid;
  for (const std::string& text : texts(model.notes))
    if (text.find(" mid:") != std::string::npos) of_mid.push_back(text);
  EXPECT_EQ(of_mid,
            (std::vector<std::string>{"forward mid: in 1, out 1, stash 111-", "forward mid: in 1, out 1, stash 111-",
                                      "step-i mid: in 1, stash 1111", "step-w mid: in 1, stash 1111", // in 0B0
                                      "input mid: in 1, dout 1, din 1, stash -111", "weight mid: in 1, stash -111",
                                      "step-i mid: in 1, stash 1111", "step-w mid: in 1, stash 1111", // in 0I1
                                      "input mid: in 1, dout 1, din 1, stash -111", "weight mid: in -, stash --11"}));
  const auto at = [&model](const char* what, int index) { return note(model, what, index).stash; };
  EXPECT_NE(at("forward mid", 0)[1], at("forward mid", 1)[1]); // kept
  EXPECT_EQ(at("forward mid", 0)[2], at("forward mid", 1)[2]); // not kept
  EXPECT_EQ(at("step-w mid", 0)[1], at("forward mid", 0)[1]);
  EXPECT_EQ(at("step-w mid", 0)[2], at("input mid", 0)[2]);
  EXPECT_EQ(at("weight mid", 1)[2], at("input mid", 1)[2]); // from I to W
  EXPECT_NE(at("step-w mid", 0)[0], at("step-w mid", 0)[2]);
  EXPECT_EQ(texts(model.notes)[1], "forward brief: in 1, out 1, stash 111-"); // keeps everything
}

/// What a block drops has no memory for each microbatch; what it keeps has.
TEST(RecomputeSteps, DroppedTensorsHaveNoMemoryPerMicrobatch) {
  const SampleModel model = model_of_steps();
  const auto activations = [&model](const std::string& row, const executor::ChosenSteps& of_mid) {
    return rank_of_steps(model, row, of_mid, 3).state->memory({})[4].bytes;
  };
  const std::size_t slot = Arena::aligned(3 * 2 * 4 * 4);
  const char* const flush = "0F0 0F1 0F2 0B0 0B1 0B2";
  const std::size_t all = activations(flush, {});
  EXPECT_EQ(all, SampleRank(model, 1, 3, flush).state->memory({})[4].bytes);
  EXPECT_EQ(all - activations(flush, {{1}, {2}}), (3 - 1) * slot); // three slots, and one tensor in the workspace
  EXPECT_EQ(all - activations(flush, {{0, 1}, {1, 2}}), (6 - 2) * slot);
}

TEST(RecomputeSteps, StepsMustBeThoseOfTheLayer) {
  const auto error_of = [](const SampleModel& model, const executor::ChosenSteps& chosen) {
    return test::error_of([&] { rank_of_steps(model, "0F0 0F1 0B0 0B1", chosen); });
  };
  EXPECT_THAT(error_of(sample_model(), {}), HasSubstr("brief does not have the interface triax.recompute_steps"));
  EXPECT_THAT(error_of(model_of_steps(), {{2}, {}}), HasSubstr("mid has 2 steps, but 2 was chosen"));
  EXPECT_THAT(error_of(model_of_steps(), {{0}, {0}}), HasSubstr("mid: the tensor 0 cannot be recomputed"));
  SampleModel model = model_of_steps();
  model.specs[2].steps[0].writes = {3};
  EXPECT_THAT(error_of(model, {}), HasSubstr("mid: the step \"step-i\" lists 3, which is not a tensor"));
  model.specs[2].steps = {{"step-w", {2}, {1}}, {"step-i", {1}, {}}};
  EXPECT_THAT(error_of(model, {}), HasSubstr("mid: the step \"step-w\" reads \"i\", which no earlier step writes"));
  model.specs[2].steps = {{"step-i", {1}, {}}};
  EXPECT_THAT(error_of(model, {}), HasSubstr("mid: no step writes \"w\""));
}

} // namespace
} // namespace triax
