// SPDX-License-Identifier: Apache-2.0
// Stages: the views that a layer gets in each call, the memory of tensors by lifetime, and refused models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "executor/model_error.hpp"
#include "executor/state_of.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

using test::Note;
using test::note;
using test::sample_model;
using test::SampleModel;
using test::SampleRank;
using test::texts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  SampleRank rank(model, 1, 2, "0F0 0F1 0B0 0I1 0W1", {}, Layout::ptd(1, 1, 1), Recompute::full);
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
    return SampleRank(model, 1, 3, row, {}, Layout::ptd(1, 1, 1), Recompute::full).state->memory({})[4].bytes;
  };
  const std::size_t slot = Arena::aligned(3 * 2 * 4 * 4);
  const std::size_t alternating = activations("0F0 0B0 0F1 0B1 0F2 0B2");
  // i and w of first and last, the inputs of brief and mid, the input of last.
  EXPECT_EQ(activations("0F0 0F1 0F2 0B0 0B1 0B2") - alternating, 2 * (4 + 3) * slot);
}

/// The sample model, whose blocks recompute the tensors i and w.
SampleModel cheap_model() {
  SampleModel model = sample_model();
  model.specs[1].recomputed = model.specs[2].recomputed = {1, 2};
  return model;
}

TEST(Stage, CheapTensorsAreRecomputedBeforeTheBackward) {
  const SampleModel model = cheap_model();
  SampleRank rank(model, 1, 2, "0F0 0F1 0B0 0I1 0W1", {}, Layout::ptd(1, 1, 1), Recompute::cheap);
  rank.allocate();
  rank.walk(rank.training);
  std::vector<std::string> of_mid;
  for (const std::string& text : texts(model.notes))
    if (text.find(" mid:") != std::string::npos) of_mid.push_back(text);
  EXPECT_EQ(of_mid,
            (std::vector<std::string>{"forward mid: in 1, out 1, stash 111-", "forward mid: in 1, out 1, stash 111-",
                                      "recompute mid: in 1, stash -111", // in 0B0
                                      "input mid: in 1, dout 1, din 1, stash -111", "weight mid: in 1, stash -111",
                                      "recompute mid: in 1, stash -111", // in 0I1
                                      "input mid: in 1, dout 1, din 1, stash -111", "weight mid: in -, stash --11"}));
  const auto at = [&model](const char* what, int index) { return note(model, what, index).stash; };
  EXPECT_EQ(at("forward mid", 0), at("forward mid", 1)); // not kept
  EXPECT_EQ(at("recompute mid", 0), at("input mid", 0));
  EXPECT_EQ(at("recompute mid", 1), at("input mid", 1));
  EXPECT_EQ(at("weight mid", 1)[2], at("input mid", 1)[2]); // from I to W
  EXPECT_NE(at("input mid", 1)[1], at("input mid", 1)[2]);
}

/// Each microbatch in flight keeps i and w of first and last, and the inputs of mid and last; from I to W, w and iw.
TEST(Stage, CheapTensorsHaveNoMemoryPerMicrobatch) {
  const SampleModel model = cheap_model();
  const auto activations = [&model](const std::string& row) {
    return SampleRank(model, 1, 3, row, {}, Layout::ptd(1, 1, 1), Recompute::cheap).state->memory({})[4].bytes;
  };
  const std::size_t slot = Arena::aligned(3 * 2 * 4 * 4);
  const std::size_t alternating = activations("0F0 0B0 0F1 0B1 0F2 0B2");
  EXPECT_EQ(activations("0F0 0F1 0F2 0B0 0B1 0B2") - alternating, 2 * (4 + 2) * slot);
  EXPECT_EQ(activations("0F0 0I0 0F1 0I1 0F2 0I2 0W0 0W1 0W2") - alternating, (2 * (2 + 1) + 3 * (4 + 2)) * slot);
}

TEST(Stage, CheapTensorsMustOutliveTheForward) {
  for (const int index : {-1, 0, 3, 4}) {
    SampleModel model = cheap_model();
    model.specs[2].recomputed = {index};
    EXPECT_THAT(test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0", {}, Layout::ptd(1, 1, 1), Recompute::cheap); }),
                ::testing::HasSubstr(text("mid: recomputed_stash() lists {}, which is not a tensor", index)));
  }
  SampleModel model = cheap_model();
  model.specs[2].recomputed.push_back(model.specs[2].recomputed.front());
  EXPECT_THAT(test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0", {}, Layout::ptd(1, 1, 1), Recompute::cheap); }),
              ::testing::HasSubstr(text("mid: recomputed_stash() lists {} twice", model.specs[2].recomputed.front())));
  model.specs[2].recomputed.clear();
  EXPECT_THAT(test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0", {}, Layout::ptd(1, 1, 1), Recompute::cheap); }),
              ::testing::HasSubstr("mid does not have the interface triax.cheap_recompute"));
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

std::vector<std::unique_ptr<Layer>> layers_of(const SampleModel& model) {
  const Layout layout = Layout::ptd(1, 1, 1);
  std::vector<std::unique_ptr<Layer>> out;
  for (int index = 0; index < model.count(); ++index) out.push_back(model.layer(index, LayerContext{layout}));
  return out;
}

/// Makes the last layer end in logits, and `brief` keep keys.
SampleModel generating_model() {
  SampleModel model = sample_model();
  model.specs[1].stash.push_back({"keys", {8, 2, 4}, DType::f32, Life::sequence});
  model.specs[3].inputs.erase(model.specs[3].inputs.begin());
  model.specs[3].outputs = {{"logits", {3, 2, 5}}};
  return model;
}

/// Views of a call have its number of rows; those of Life::sequence all rows of their microbatch.
TEST(Stage, AGeneratingStageHasTheRowsOfACall) {
  const SampleModel model = generating_model();
  executor::Stage stage(0, 0, layers_of(model), {.purpose = Purpose::generate, .microbatches = 2});
  stage.begin_with_data();
  stage.end_with_result();
  const Layout layout = Layout::ptd(1, 1, 1);
  std::vector<executor::ModelParameters::NumberedLayer> numbered;
  stage.for_each_layer([&](int number, const Layer& layer) { numbered.push_back({number, &layer, 0}); });
  executor::Parameters parameters(
      std::make_shared<executor::ModelParameters>(numbered, 0, layout, std::span<const Tie>(), executor::MemoryTypes{},
                                                  schedule::Sharding::none),
      0, 0);
  const auto device = make_host_device();
  const auto stream = device->make_stream("sample");
  executor::RankMemory memory;
  const auto assign = [&](executor::RankMemory& to) {
    parameters.assign_weights(to);
    stage.assign_memory(to, {}, parameters);
  };
  assign(memory);
  EXPECT_EQ(memory.gradients.used() + memory.optimizer.used() + memory.activations.used(), 0u);
  EXPECT_EQ(memory.cache.used(), 2 * Arena::aligned(8 * 2 * 4 * 4));
  executor::RankMemory allocated = executor::RankMemory::allocated(*device, memory, {}, *stream);
  assign(allocated);

  std::vector<std::int32_t> tokens(6);
  std::vector<float> logits(30);
  const executor::MicrobatchViews batch{.tokens = {tokens.data(), DType::i32, {3, 2}},
                                        .targets = {},
                                        .samples = {},
                                        .result = {logits.data(), DType::f32, {3, 2, 5}}};
  test::NoKernels none;
  DryRunKernels kernels(none);
  const Groups no_groups;
  const LayerCall call{*device, kernels, *stream, {}, no_groups, {}};
  stage.set_rows(1);
  for (const int microbatch : {0, 1, 0})
    stage.run({.kind = schedule::Kind::forward, .stage = 0, .microbatch = microbatch}, call, batch);
  EXPECT_EQ(texts(model.notes)[1], "forward brief: in 1, out 1, stash 111-1");
  const Shape row{1, 2, 4};
  EXPECT_THAT(note(model, "forward brief").shapes, ElementsAre(row, row, row, row, row, Shape(), Shape{8, 2, 4}));
  EXPECT_THAT(note(model, "forward last").shapes, ElementsAre(row, (Shape{1, 2, 5}), row, row, row, Shape()));
  EXPECT_EQ(note(model, "forward last").out[0], logits.data());
  EXPECT_NE(note(model, "forward brief", 0).stash[4], note(model, "forward brief", 1).stash[4]);
  EXPECT_EQ(note(model, "forward brief", 0).stash[4], note(model, "forward brief", 2).stash[4]);
  EXPECT_EQ(note(model, "forward brief", 0).stash[1], note(model, "forward brief", 1).stash[1]);
  EXPECT_THAT(
      test::error_of([&] { stage.run({.kind = schedule::Kind::backward, .stage = 0, .microbatch = 0}, call, batch); }),
      ::testing::HasSubstr("0B0: a stage that generates has no B"));
}

TEST(Stage, LayersMustSuitThePurpose) {
  const auto made = [](const SampleModel& model, Purpose purpose) {
    return test::error_of([&] {
      executor::Stage stage(0, 0, layers_of(model), {.purpose = purpose, .microbatches = 1});
      stage.end_with_result();
    });
  };
  SampleModel model = generating_model();
  EXPECT_EQ(made(model, Purpose::generate), "no error");
  EXPECT_THAT(made(model, Purpose::train),
              ::testing::HasSubstr("brief: \"keys\" is kept from call to call (Life::sequence), which only "
                                   "Purpose::generate has"));
  model.specs[3].outputs[0].name = "scores";
  EXPECT_THAT(made(model, Purpose::generate),
              ::testing::HasSubstr("last is the last layer: its one output must be \"logits\" [rows, b, V]"));
  model.specs[1].inputs[0].row_dim = 1;
  EXPECT_THAT(made(model, Purpose::generate),
              ::testing::HasSubstr("\"x\" has its rows in dimension 0 for first, but in 1 for brief"));
  EXPECT_THAT(made(sample_model(), Purpose::generate),
              ::testing::HasSubstr("last reads targets, which Purpose::generate does not have"));
}

class Named {
 public:
  static constexpr std::string_view kExtension = "sample.named";
};

TEST(Layer, MayHaveOptionalInterfaces) {
  class WithName final : public test::SampleLayer {
   public:
    using SampleLayer::SampleLayer;
    void* extension(std::string_view id) noexcept override { return id == Named::kExtension ? &named : nullptr; }
    Named named;
  };
  std::vector<Note> notes;
  WithName with({}, notes);
  test::SampleLayer without({}, notes);
  EXPECT_EQ(find_extension<Named>(with), &with.named);
  EXPECT_EQ(find_extension<Named>(without), nullptr);
}

std::string refusal(const SampleModel& model) {
  try {
    SampleRank(model, 1, 1, "0F0 0B0");
  } catch (const executor::ModelError& error) { // without a source location, as users read it
    EXPECT_EQ(error.where(), "");
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
  EXPECT_EQ(refusal(model), "brief makes \"x\" as f32[3, 2, 4], but mid takes it as f32[3, 2, 8]");
  model = sample_model();
  model.specs[1].outputs[0].sharded = true;
  EXPECT_EQ(refusal(model), "of \"x\", one of brief and mid has parts (TensorSpec::sharded)");
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

TEST(Stage, ParametersOfAModelHaveUniqueNames) {
  SampleModel model = sample_model();
  model.specs[1].params[1].name = "a";
  EXPECT_THAT(test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0"); }),
              HasSubstr("two parameters of the model have the name \"brief/a\""));
  model = sample_model();
  model.specs[2].name = "brief";
  EXPECT_THAT(test::error_of([&] { SampleRank(model, 2, 1, "0F0 1F0 1B0 0B0"); }),
              HasSubstr("two parameters of the model have the name \"brief/a\""));
}

} // namespace
} // namespace triax
