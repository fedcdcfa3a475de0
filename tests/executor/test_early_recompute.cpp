// SPDX-License-Identifier: Apache-2.0
// R: what it calls before the backward of a stage, with which views, and without more memory.
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Stage 0 has the blocks brief and mid, stage 1 the block third.
SampleModel model_of_two_stages() {
  SampleModel model = sample_model();
  model.specs[1].recomputed = model.specs[2].recomputed = {1, 2};
  model.specs.insert(model.specs.begin() + 3, model.specs[2]);
  model.specs[3].name = "third";
  model.specs[3].params = {test::sample_param("a", {4}, 41)};
  return model;
}

SampleRank rank_of_two_stages(const SampleModel& model, Recompute how, const std::vector<bool>& recomputes_early) {
  return SampleRank(model, 2, 2, "0F0 0F1 1F0 1F1 1B0 1B1 0B0 0I1 0W1", {}, Layout::ptd(1, 1, 1), how,
                    schedule::Sharding::none, {}, recomputes_early);
}

/// The calls of each action of stage 0 that is not a forward: "0R0: forward mid".
std::vector<std::string> backward_calls(const SampleModel& model, SampleRank& rank) {
  std::vector<std::string> out;
  for (ActionId id = 0; id < rank.training.actions().size(); ++id) {
    const schedule::ProgramAction& action = rank.training.actions()[id];
    const std::size_t before = model.notes.size();
    rank.run(action);
    if (action.stage != 0 || action.kind == schedule::Kind::forward || before == model.notes.size()) continue;
    std::string& calls = out.emplace_back(std::string(rank.training.label(id)) + ":");
    for (std::size_t at = before; at < model.notes.size(); ++at)
      calls += " " + model.notes[at].text.substr(0, model.notes[at].text.find(':')) + ",";
  }
  return out;
}

/// R repeats the block whose backward is first. The other one is repeated later, in the same memory.
TEST(EarlyRecompute, RecomputesTheLastGroupBeforeItsBackward) {
  const SampleModel model = model_of_two_stages();
  SampleRank rank = rank_of_two_stages(model, Recompute::full, {true, false});
  rank.allocate();
  EXPECT_THAT(backward_calls(model, rank),
              ElementsAre("0R0: forward mid,",
                          "0B0: input mid, weight mid, forward brief, input brief, weight brief, input first, weight "
                          "first,",
                          "0R1: forward mid,", "0I1: input mid, forward brief, input brief, input first,",
                          "0W1: weight mid, weight brief, weight first,"));
  const auto at = [&model](const char* what, int index) { return note(model, what, index).stash; };
  EXPECT_EQ(at("forward mid", 2), at("input mid", 0));
  EXPECT_EQ(at("forward mid", 3), at("input mid", 1));
  EXPECT_EQ(at("weight mid", 1)[2], at("input mid", 1)[2]); // from R to W
  EXPECT_EQ(note(model, "forward mid", 3).in, note(model, "forward mid", 1).in);
  EXPECT_EQ(note(model, "forward mid", 2).text, "forward mid: in 1, out -, stash 1111");
}

TEST(EarlyRecompute, RecomputesCheaplyBeforeItsBackward) {
  const SampleModel model = model_of_two_stages();
  SampleRank rank = rank_of_two_stages(model, Recompute::cheap, {true, false});
  rank.allocate();
  EXPECT_THAT(backward_calls(model, rank),
              ElementsAre("0R0: recompute mid,",
                          "0B0: input mid, weight mid, recompute brief, input brief, weight brief, input first, weight "
                          "first,",
                          "0R1: recompute mid,", "0I1: input mid, recompute brief, input brief, input first,",
                          "0W1: weight mid, weight brief, weight first,"));
  const auto at = [&model](const char* what, int index) { return note(model, what, index).stash; };
  EXPECT_EQ(at("recompute mid", 0), at("input mid", 0));
  EXPECT_EQ(at("recompute mid", 1), at("input mid", 1));
  EXPECT_EQ(at("weight mid", 1)[2], at("input mid", 1)[2]); // from R to W
}

TEST(EarlyRecompute, RecomputingEarlyNeedsNoMemory) {
  const SampleModel model = model_of_two_stages();
  for (const Recompute how : {Recompute::cheap, Recompute::full}) {
    const SampleRank within = rank_of_two_stages(model, how, {}), early = rank_of_two_stages(model, how, {true, false});
    const auto one = within.state->memory({}), other = early.state->memory({});
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t row = 0; row < one.size(); ++row) EXPECT_EQ(one[row].bytes, other[row].bytes) << one[row].what;
  }
}

TEST(EarlyRecompute, RecomputesEarlyOnlyWhatItsLastLayerDoesNotKeep) {
  const SampleModel model = model_of_two_stages();
  EXPECT_THAT(test::error_of([&] {
                rank_of_two_stages(model, Recompute::full, {true, true});
              }),
              HasSubstr("stage 1: its last layer, last, recomputes nothing"));
  SampleRank rank = rank_of_two_stages(model, Recompute::full, {});
  rank.allocate();
  schedule::ProgramAction action = rank.training.actions()[0];
  action.kind = schedule::Kind::recompute;
  EXPECT_THAT(test::error_of([&] { rank.run(action); }),
              HasSubstr("stage 0 does not recompute before its gradients arrive"));
}

} // namespace
} // namespace triax
