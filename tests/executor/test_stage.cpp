// SPDX-License-Identifier: Apache-2.0
// Stages: the views that a layer gets in each call, the memory of tensors by lifetime, and refused models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "executor/state_of.hpp"

namespace triax {
namespace {

using test::Note;
using test::sample_model;
using test::SampleModel;
using test::SampleRank;
using ::testing::ElementsAre;

std::vector<std::string> texts(const std::vector<Note>& notes) {
  std::vector<std::string> out;
  for (const Note& note : notes) out.push_back(note.text);
  return out;
}

const Note& note(const SampleModel& model, const std::string& begin, int which = 0) {
  for (const Note& candidate : model.notes)
    if (candidate.text.starts_with(begin) && which-- == 0) return candidate;
  throw std::runtime_error("no " + begin);
}

TEST(Stage, PassesOnlyLiveTensors) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 1, "0F0 0I0 0W0");
  rank.allocate();
  rank.walk(rank.training);
  EXPECT_THAT(
      texts(model.notes),
      ElementsAre("forward first: in 1, out 1, stash 111-", "forward brief: in 1, out 1, stash 111-",
                  "forward mid: in 1, out 1, stash 111-", "forward last: in 11, out 1, stash 111-",
                  "input last: in 11, dout -, din -1, stash -111", "input mid: in 1, dout 1, din 1, stash -111",
                  "input brief: in -, dout 1, din 1, stash -111", "input first: in 1, dout 1, din -, stash -111",
                  "weight last: in 11, stash --11", "weight mid: in -, stash --11", "weight brief: in -, stash --11",
                  "weight first: in 1, stash --11"));
}

TEST(Stage, AWholeBackwardIsInputThenWeightLayerByLayer) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 1, "0F0 0B0");
  rank.allocate();
  rank.walk(rank.training);
  const std::vector<std::string> all = texts(model.notes);
  EXPECT_THAT(std::vector<std::string>(all.begin() + 4, all.begin() + 8),
              ElementsAre("input last: in 11, dout -, din -1, stash -111", "weight last: in 11, stash -111",
                          "input mid: in 1, dout 1, din 1, stash -111", "weight mid: in 1, stash -111"));
}

TEST(Stage, OneLayersOutputIsTheNextOnesInput) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 2, "0F0 0F1 0B0 0B1");
  rank.allocate();
  rank.walk(rank.training);
  for (int microbatch : {0, 1}) {
    EXPECT_EQ(note(model, "forward first", microbatch).out[0], note(model, "forward brief", microbatch).in[0]);
    EXPECT_EQ(note(model, "forward mid", microbatch).out[0], note(model, "forward last", microbatch).in[1]);
    EXPECT_EQ(note(model, "input last", microbatch).in[1], note(model, "forward last", microbatch).in[1]);
    EXPECT_EQ(note(model, "input last", microbatch).din[1], note(model, "input mid", microbatch).dout[0]);
    EXPECT_EQ(note(model, "input brief", microbatch).din[0], note(model, "input first", microbatch).dout[0]);
    EXPECT_NE(note(model, "input mid", microbatch).din[0], note(model, "input mid", microbatch).dout[0]);
  }
}

TEST(Stage, MicrobatchesInFlightHaveSlotsOfTheirOwn) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 2, "0F0 0F1 0B0 0B1");
  rank.allocate();
  rank.walk(rank.training);
  std::set<void*> kept;
  for (int microbatch : {0, 1})
    for (const char* layer : {"forward brief", "forward mid", "forward last"}) {
      const Note& made = note(model, layer, microbatch);
      kept.insert(made.stash[1]);
      kept.insert(made.stash[2]);
    }
  EXPECT_EQ(kept.size(), 12u);
  EXPECT_EQ(note(model, "forward mid", 0).stash[0], note(model, "forward mid", 1).stash[0]); // live within a call
  EXPECT_EQ(note(model, "input mid", 1).stash[1], note(model, "forward mid", 1).stash[1]);
  EXPECT_NE(note(model, "forward first", 0).in[0], note(model, "forward first", 1).in[0]); // tokens
}

TEST(Stage, ChunksHandOverInSlots) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 2, 2, "0F0 0F1 1F0 1F1 1I0 1I1 0I0 0I1 1W0 1W1 0W0 0W1");
  rank.allocate();
  rank.walk(rank.training);
  EXPECT_EQ(note(model, "forward brief", 0).out[0], note(model, "forward mid", 0).in[0]);
  EXPECT_EQ(note(model, "forward brief", 1).out[0], note(model, "forward mid", 1).in[0]);
  EXPECT_NE(note(model, "forward brief", 0).out[0], note(model, "forward brief", 1).out[0]);
  EXPECT_EQ(note(model, "input mid", 1).din[0], note(model, "input brief", 1).dout[0]);
  EXPECT_NE(note(model, "input mid", 0).din[0], note(model, "input mid", 1).din[0]);
}

/// Of the layers first, brief, mid and last, the blocks brief and mid recompute.
TEST(Stage, ARecomputedLayerRepeatsItsForwardBeforeItsBackward) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 2, "0F0 0F1 0B0 0I1 0W1", {}, Layout::ptd(1, 1, 1), true);
  rank.allocate();
  rank.walk(rank.training);
  std::vector<std::string> of_mid;
  for (const std::string& text : texts(model.notes))
    if (text.find(" mid:") != std::string::npos) of_mid.push_back(text);
  EXPECT_EQ(of_mid,
            (std::vector<std::string>{"forward mid: in 1, out 1, stash 111-", "forward mid: in 1, out 1, stash 111-",
                                      "forward mid: in 1, out -, stash 1111", // in 0B0
                                      "input mid: in 1, dout 1, din 1, stash 1111", "weight mid: in 1, stash 1111",
                                      "forward mid: in 1, out -, stash 1111", // in 0I1
                                      "input mid: in 1, dout 1, din 1, stash 1111", "weight mid: in -, stash --11"}));
  const auto at = [&model](const char* what, int index) { return note(model, what, index).stash; };
  EXPECT_EQ(at("forward mid", 0), at("forward mid", 1)); // not kept
  EXPECT_EQ(at("forward mid", 2), at("input mid", 0));
  EXPECT_EQ(at("forward mid", 3), at("input mid", 1));
  EXPECT_EQ(at("weight mid", 1)[2], at("input mid", 1)[2]); // from I to W
  EXPECT_EQ(at("weight mid", 1)[3], at("input mid", 1)[3]);
  EXPECT_EQ(note(model, "input mid", 1).in, note(model, "forward mid", 1).in); // kept
}

TEST(Stage, RecomputedLayersKeepNoStashPerMicrobatch) {
  const SampleModel model = sample_model();
  const auto activations = [&model](const std::string& row) {
    return SampleRank(model, 1, 3, row, {}, Layout::ptd(1, 1, 1), true).state->memory({})[4].bytes;
  };
  const std::size_t slot = Arena::aligned(3 * 2 * 4 * 4);
  const std::size_t alternating = activations("0F0 0B0 0F1 0B1 0F2 0B2");
  // i and w of first and last, the inputs of brief and mid, the input of last.
  EXPECT_EQ(activations("0F0 0F1 0F2 0B0 0B1 0B2") - alternating, 2 * (4 + 3) * slot);
}

TEST(Stage, EvaluationUsesTheMemoryOfTraining) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 2, 3, "0F0 0F1 0F2 1F0 1F1 1F2 1B0 1B1 1B2 0B0 0B1 0B2");
  const auto counted = rank.state->memory({});
  rank.allocate();
  rank.walk(rank.evaluation);
  EXPECT_EQ(texts(model.notes).size(), 12u);
  EXPECT_EQ(note(model, "forward mid", 0).stash[1], note(model, "forward mid", 2).stash[1]);
  const auto used = rank.state->memory({});
  for (std::size_t i = 0; i < used.size(); ++i) EXPECT_EQ(used[i].bytes, counted[i].bytes) << used[i].what;
}

TEST(Stage, ActivationsGrowByTheMicrobatchesInFlight) {
  const SampleModel model = sample_model();
  const auto activations = [&model](const std::string& row) {
    return SampleRank(model, 1, 3, row).state->memory({})[4].bytes;
  };
  const std::size_t slot = Arena::aligned(3 * 2 * 4 * 4);
  const std::size_t alternating = activations("0F0 0B0 0F1 0B1 0F2 0B2");
  // i and w of four layers, and the inputs of mid and last.
  EXPECT_EQ(activations("0F0 0F1 0F2 0B0 0B1 0B2") - alternating, 2 * (8 + 2) * slot);
  // I runs at once and W at the end: w of four layers, the input of last, iw of four layers.
  EXPECT_EQ(activations("0F0 0I0 0F1 0I1 0F2 0I2 0W0 0W1 0W2") - alternating, (2 * (4 + 1) + 3 * 4) * slot);
}

std::string refusal(const SampleModel& model) {
  try {
    SampleRank(model, 1, 1, "0F0 0B0");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Stage, LayersMustFitTogether) {
  SampleModel model = sample_model();
  model.specs[2].inputs[0].name = "y";
  EXPECT_EQ(refusal(model), "brief makes \"x\", which mid does not take");
  model = sample_model();
  model.specs[2].inputs[0].shape = {3, 2, 8};
  EXPECT_EQ(refusal(model), "brief makes \"x\" as f32[3, 2, 4], and mid takes it as f32[3, 2, 8]");
  model = sample_model();
  model.specs[1].outputs[0].parted = true;
  EXPECT_EQ(refusal(model), "of \"x\", one of brief and mid has parts (TensorSpec::parted)");
  model = sample_model();
  model.specs[2].inputs.push_back({"y", {1}});
  EXPECT_EQ(refusal(model), "mid takes \"y\", which brief does not make");
  model = sample_model();
  model.specs[0].inputs[0].name = "x";
  EXPECT_EQ(refusal(model), "first is the first layer and takes \"x\": only tokens and targets come from the data");
  model = sample_model();
  model.specs[3].outputs[0].name = "logits";
  EXPECT_EQ(refusal(model), "last is the last layer: its one output must be \"loss\", f64");
  model = sample_model();
  model.specs[1].inputs[0].life = Life::input_to_weight;
  EXPECT_EQ(refusal(model), "the input \"x\" cannot begin with the input gradient: it arrives with the forward");
}

} // namespace
} // namespace triax
