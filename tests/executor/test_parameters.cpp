// SPDX-License-Identifier: Apache-2.0
// Parameters: names, ties with two gradients, padding, buckets, owned parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/init.hpp"
#include "executor/state_of.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

using executor::Parameter;
using test::sample_model;
using test::sample_param;
using test::SampleModel;
using test::SampleRank;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Parameters, TiedOnesAreOneWithTwoAccumulators) {
  SampleModel model = sample_model();
  model.tied = {{0, "table", 3, "table"}};
  SampleRank rank(model, 2, 1, "0F0 1F0 1B0 0B0", {{"m"}});
  rank.allocate();
  rank.walk(rank.training);
  const std::vector<Parameter>& all = rank.state->parameters().all();
  std::vector<std::string> names;
  for (const Parameter& parameter : all) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first/table", "brief/a", "brief/b", "mid/a"}));
  ASSERT_EQ(all[0].exchanged.size(), 2u);
  EXPECT_EQ(model.notes.back().text.substr(0, 12), "weight first");
  EXPECT_EQ(model.notes.back().grads[0], all[0].gradient.data());
  for (const test::Note& note : model.notes)
    if (note.text.starts_with("weight last")) {
      EXPECT_EQ(note.grads[0], all[0].exchanged[1].data());
    }
  EXPECT_NE(all[0].exchanged[1].data(), all[0].gradient.data());
  EXPECT_EQ(rank.state->parameters().working_of(3)[0][0].data(), all[0].master.data());
  EXPECT_EQ(rank.state->shards().size(), 4u);
}

// Transfers on an edge are matched by their order, so both ends use the model's order of tied parameters.
TEST(Parameters, EveryRankHasTheModelsOrder) {
  SampleModel model = sample_model();
  model.specs[0].params = {sample_param("a", {4}, 1), sample_param("b", {4}, 2)};
  model.specs[3].params = {sample_param("of b", {4}, 49), sample_param("of a", {4}, 50)};
  model.tied = {{0, "a", 3, "of a"}, {0, "b", 3, "of b"}};
  const Layout layout = Layout::ptd(2, 1, 1);
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<executor::ModelParameters::NumberedLayer> numbered;
  for (int number = 0; number < 4; ++number) {
    layers.push_back(model.layer(number, LayerContext{layout, 0, 2, 5}));
    numbered.push_back({number, layers.back().get(), number / 2});
  }
  const executor::Parameters last(
      std::make_shared<executor::ModelParameters>(numbered, 1, layout, model.tied, executor::MemoryTypes{},
                                                  schedule::Sharding::none),
      1, 0);
  std::vector<std::string> names;
  for (const Parameter& parameter : last.all()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"first/a", "first/b", "mid/a"}));
  EXPECT_EQ(last.all()[0].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(last.most_on_a_rank(), 4u); // rank 0: a, b, and the two of layer brief
}

TEST(Parameters, TiesThatJoinNothingAreRefused) {
  const auto message = [](const Tie& tie) {
    SampleModel model = sample_model();
    model.tied = {tie};
    try {
      SampleRank(model, 1, 1, "0F0 0B0");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(message({0, "tabel", 3, "table"}), "layer 0 has no parameter \"tabel\" to tie to");
  EXPECT_EQ(message({2, "a", 3, "table"}), "mid/a is [4] and cannot be tied to table of layer 3, which is [5, 4]");
  EXPECT_EQ(message({3, "table", 0, "table"}), "a tie of layer 3 and layer 0: the first must come before the second");
  EXPECT_EQ(message({0, "table", 3, "tabel"}), "layer 3 has no parameter \"tabel\" to tie");
  EXPECT_EQ(message({0, "table", 9, "table"}), "there is no layer 9");
}

TEST(Parameters, ALayersGradientsAreOneBucket) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 1, "0F0 0B0");
  rank.allocate();
  const std::vector<TensorView>& gradients = rank.state->parameters().gradients_of(1);
  const std::vector<executor::Bucket>& buckets = rank.state->parameters().buckets_of(1);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].gradients.data(), gradients[0].data());
  EXPECT_EQ(buckets[0].gradients.elements(), static_cast<std::int64_t>(Arena::kAlignment / 4) + 16);
}

/// The parameters of a model on one pipeline rank, for each rank of a layout.
std::vector<executor::Parameters> on_all_ranks(const SampleModel& model, const Layout& layout,
                                               schedule::Sharding sharding = schedule::Sharding::none) {
  static std::vector<std::unique_ptr<Layer>> layers; // descriptions
  std::vector<executor::Parameters> out;
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    std::vector<executor::ModelParameters::NumberedLayer> numbered;
    for (int number = 0; number < model.count(); ++number) {
      layers.push_back(model.layer(number, LayerContext{layout, rank, 2, 5}));
      numbered.push_back({number, layers.back().get(), 0});
    }
    out.emplace_back(std::make_shared<executor::ModelParameters>(numbered, rank, layout, model.tied,
                                                                 executor::MemoryTypes{}, sharding),
                     0, 0);
  }
  return out;
}

/// A bucket of 5, 300 and 40 elements. Four data ranks own parts of 128, the arena's padding between them.
SampleModel model_of_three_parameters() {
  SampleModel model = sample_model();
  model.specs[0].params = {sample_param("a", {5}, 0), sample_param("b", {100, 3}, 1), sample_param("c", {40}, 2)};
  return model;
}

TEST(Parameters, EachRankOwnsAnEqualPartOfABucket) {
  const SampleModel model = model_of_three_parameters();
  const Layout layout = Layout::ptd(1, 2, 4);
  const std::vector<executor::Parameters> ranks = on_all_ranks(model, layout);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<Parameter>& all = ranks[rank].all();
    const std::size_t data = rank / 2; // tensor ranks own the same
    const executor::OwnedPart none{}, a = all[0].owned, b = all[1].owned, c = all[2].owned;
    EXPECT_EQ(a, (data == 0 ? executor::OwnedPart{0, 5} : none)) << rank;
    EXPECT_EQ(b, (std::vector<executor::OwnedPart>{{0, 64}, {64, 128}, {192, 108}, none}[data])) << rank;
    EXPECT_EQ(c, (std::vector<executor::OwnedPart>{none, none, none, {0, 40}}[data])) << rank;
    EXPECT_EQ(ranks[rank].buckets_of(0).size(), 1u);
    EXPECT_EQ(ranks[rank].buckets_of(0)[0].elements, 64 + 320 + 40);
  }
}

/// Of what it owns, if the ranks divide the update, and of the whole parameter otherwise.
TEST(Parameters, AShardSaysWhereItBegins) {
  const SampleModel model = model_of_three_parameters();
  for (const schedule::Sharding sharding : {schedule::Sharding::none, schedule::Sharding::states,
                                            schedule::Sharding::gradients, schedule::Sharding::parameters}) {
    const bool divides = sharding != schedule::Sharding::none;
    std::vector<executor::Parameters> ranks = on_all_ranks(model, Layout::ptd(1, 1, 4), sharding);
    for (std::size_t data = 0; data < ranks.size(); ++data) {
      executor::RankMemory counted;
      ranks[data].assign_memory(counted);
      const std::vector<ParameterShard> shards = ranks[data].shards(0, model.count());
      EXPECT_EQ(shards[1].first, (divides ? std::vector<std::int64_t>{0, 64, 192, 0}[data] : 0)) << data;
      for (std::size_t i = 0; i < shards.size(); ++i) {
        const Parameter& parameter = ranks[data].all()[i];
        EXPECT_EQ(shards[i].first, divides ? parameter.owned.first : 0) << shards[i].name;
        EXPECT_EQ(shards[i].master.elements(), divides ? parameter.owned.count : parameter.spec->local.elements());
        EXPECT_EQ(shards[i].group, "data");
        EXPECT_EQ(shards[i].members, 4);
        EXPECT_EQ(shards[i].sharded, divides) << data; // on ranks that own all elements, too
        EXPECT_EQ(shards[i].owned_first, parameter.owned.first);
        EXPECT_EQ(shards[i].owned(shards[i].master).elements(), parameter.owned.count); // with every sharding
      }
    }
  }
}

TEST(Parameters, OneRankOwnsWhatNobodyElseAdds) {
  SampleModel model = sample_model();
  for (const executor::Parameters& rank : on_all_ranks(model, Layout::ptd(1, 2, 1)))
    for (const Parameter& parameter : rank.all())
      EXPECT_EQ(parameter.owned, (executor::OwnedPart{0, parameter.spec->local.elements()})) << parameter.name;
}

TEST(Parameters, PaddingIsInNoShardOfItsRank) {
  SampleModel model = sample_model();
  ParamSpec& table = model.specs[0].params[0];
  table.global = {70, 4};
  table.cuts = {{"tensor", 0, 35, 70}};
  table.local = {64, 4}; // 29 rows of padding
  std::int64_t owned = 0;
  for (const executor::Parameters& rank : on_all_ranks(model, Layout::ptd(1, 2, 2))) owned += rank.all()[0].owned.count;
  EXPECT_EQ(owned, 2 * 35 * 4); // this description is that of both tensor ranks
}

TEST(Parameters, ATiedOneIsAloneInItsBucketsAndHasOneShard) {
  SampleModel model = sample_model();
  model.specs[0].params = {sample_param("before", {50}, 0), sample_param("table", {5, 40}, 1)};
  model.specs[3].params = {sample_param("table", {5, 40}, 50), sample_param("after", {50}, 51)};
  model.tied = {{0, "table", 3, "table"}};
  const std::vector<executor::Parameters> ranks = on_all_ranks(model, Layout::ptd(1, 1, 2));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks[rank].all()[1].name, "first/table");
    EXPECT_EQ(ranks[rank].all()[1].owned, (rank == 0 ? executor::OwnedPart{0, 128} : executor::OwnedPart{128, 72}));
    for (const int layer : {0, 3}) {
      const std::vector<executor::Bucket>& buckets = ranks[rank].buckets_of(layer);
      ASSERT_EQ(buckets.size(), 2u) << layer;
      for (const executor::Bucket& bucket : buckets) EXPECT_EQ(bucket.elements, bucket.tied ? 200 : 50);
    }
  }
}

TEST(Parameters, AStageUpdatesThoseOfItsFirstLayersHere) {
  SampleModel model = sample_model();
  model.tied = {{0, "table", 3, "table"}};
  SampleRank rank(model, 2, 1, "0F0 1F0 1B0 0B0");
  const auto names = [&](int stage) {
    std::vector<std::string> out;
    for (const executor::OptimizerCall& call : rank.state->optimizer_calls(stage))
      for (const ParameterShard& shard : call.shards) out.push_back(shard.name);
    return out;
  };
  EXPECT_THAT(names(0), ElementsAre("first/table", "brief/a", "brief/b"));
  EXPECT_THAT(names(1), ElementsAre("mid/a"));
}

TEST(Parameters, PaddingIsInNoShard) {
  SampleModel model = sample_model();
  ParamSpec& table = model.specs[0].params[0];
  table.global = {7, 4};
  table.cuts = {{"tensor", 0, 4, 7}}; // of the second of two ranks
  table.local = {4, 4};
  SampleRank rank(model, 1, 1, "0F0 0B0", {{"m"}}, Layout::ptd(1, 2, 1));
  rank.allocate();
  const ParameterShard shard = rank.state->shards()[0];
  EXPECT_EQ(shard.master.elements(), 12);
  EXPECT_EQ(shard.gradient.elements(), 12);
  EXPECT_EQ(shard.state[0].elements(), 12);
  const auto* values = rank.state->parameters().all()[0].master.as<float>();
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(values[i], static_cast<float>(executor::initial_value(table.init, 1, table.site, 16 + i)));
  for (int i = 12; i < 16; ++i) EXPECT_EQ(values[i], 0);
}

TEST(Parameters, AGradientIsAddedOverWhatDividesItsSamplesAndPositions) {
  const Layout layout({{"tensor", 2, Divides::tensors},
                       {"context", 2, Divides::positions},
                       {"expert", 2, Divides::samples},
                       {"one", 1, Divides::samples},
                       {"data", 3, Divides::samples},
                       {"pipeline", 2, Divides::layers}});
  ParamSpec spec = sample_param("w", {8, 8}, 5);
  EXPECT_THAT(executor::reduction_axes(spec, layout), ElementsAre("context", "expert", "data"));
  spec.partial = {"tensor"}; // of a norm whose input is divided by positions over the tensor ranks
  EXPECT_THAT(executor::reduction_axes(spec, layout), ElementsAre("tensor", "context", "expert", "data"));
  spec.partial = {};
  spec.cuts = {{"expert", 0, 0, 4}, {"tensor", 1, 0, 4}}; // of an expert
  EXPECT_THAT(executor::reduction_axes(spec, layout), ElementsAre("context", "data"));
}

TEST(Parameters, ParametersWithTheSameAxesShareABucket) {
  SampleModel model = sample_model();
  std::vector<ParamSpec>& params = model.specs[0].params;
  params = {sample_param("a", {5}, 0), sample_param("b", {7}, 1), sample_param("c", {3}, 2)};
  params[1].partial = {"tensor"};
  const Layout layout = Layout::ptd(1, 2, 2);
  SampleRank rank(model, 1, 1, "0F0 0B0", {}, layout);
  rank.allocate();
  const std::vector<executor::Bucket>& buckets = rank.state->parameters().buckets_of(0);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].reduction.group, "data");
  EXPECT_EQ(buckets[1].reduction.group, "tensor*data");
  const std::vector<TensorView>& gradients = rank.state->parameters().gradients_of(0);
  EXPECT_EQ(buckets[0].gradients.data(), gradients[0].data());
  EXPECT_EQ(gradients[2].as<std::byte>() - gradients[0].as<std::byte>(), 256); // next to each other
  EXPECT_EQ(buckets[1].gradients.data(), gradients[1].data());
  EXPECT_EQ(buckets[1].gradients.elements(), 7);
  const ParameterShard shard = rank.state->shards()[1];
  EXPECT_EQ(shard.group, "tensor*data");
  EXPECT_EQ(shard.members, 4);
  EXPECT_THAT(rank.state->communicator_axes(layout),
              ElementsAre(ElementsAre("tensor"), ElementsAre("data"), ElementsAre("tensor", "data")));
}

/// The description of a parameter [5, 4], with one mistake.
TEST(Parameters, ContradictionsOfADescriptionAreRefused) {
  const Layout layout(
      {{"tensor", 2, Divides::tensors}, {"data", 2, Divides::samples}, {"pipeline", 1, Divides::layers}});
  const auto error = [&layout](const std::vector<Cut>& cuts, const std::vector<std::string>& partial = {}) {
    SampleModel model = sample_model();
    model.specs[0].params[0].cuts = cuts;
    model.specs[0].params[0].partial = partial;
    return test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0", {}, layout); });
  };
  EXPECT_EQ(error({{"tensor", 0, 0, 5}}), "no error");
  EXPECT_EQ(error({}, {"tensor"}), "no error");
  EXPECT_THAT(error({{"tensor", 0, 0, 5}, {"tensor", 1, 0, 4}}), HasSubstr("table is sharded twice over axis tensor"));
  EXPECT_THAT(error({{"tensor", 0, 0, 5}, {"data", 0, 0, 5}}), HasSubstr("table is sharded twice along dimension 0"));
  EXPECT_THAT(error({{"tensor", 2, 0, 5}}), HasSubstr("is sharded along dimension 2"));
  EXPECT_THAT(error({{"tensor", 0, 3, 6}}), HasSubstr("the range [3, 6) does not fit"));
  EXPECT_THAT(error({{"tensor", 0, 3, 2}}), HasSubstr("the range [3, 2) does not fit"));
  EXPECT_THAT(error({{"tensr", 0, 0, 3}}), HasSubstr("is sharded over axis tensr, which has one rank"));
  EXPECT_THAT(error({{"pipeline", 0, 0, 5}}), HasSubstr("is sharded over axis pipeline, which divides layers"));
  EXPECT_THAT(error({}, {"data"}), HasSubstr("partial gradients over axis data, which does not divide tensors"));
  EXPECT_THAT(error({{"tensor", 0, 0, 5}}, {"tensor"}),
              HasSubstr("is sharded over axis tensor and has partial gradients"));
}

TEST(Parameters, TiedOnesHaveTheSamePartialGradients) {
  SampleModel model = sample_model();
  model.tied = {{0, "table", 3, "table"}};
  model.specs[3].params[0].partial = {"tensor"};
  EXPECT_THAT(test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0", {}, Layout::ptd(1, 2, 1)); }),
              HasSubstr("are tied, but only one of their gradients is partial"));
}

TEST(Parameters, TiedOnesHaveTheSameCuts) {
  SampleModel model = sample_model();
  model.tied = {{0, "table", 3, "table"}};
  model.specs[3].params[0].cuts = {{"tensor", 0, 0, 5}};
  EXPECT_THAT(test::error_of([&] { SampleRank(model, 1, 1, "0F0 0B0"); }),
              HasSubstr("are tied, but are sharded differently"));
}

/// The rank of each side draws and updates the weights by its own description.
TEST(Parameters, TiedOnesHaveTheSameValues) {
  const auto error_if = [](const std::function<void(ParamSpec&)>& change) {
    SampleModel model = sample_model();
    model.tied = {{0, "table", 3, "table"}};
    change(model.specs[3].params[0]);
    return test::error_of([&] { SampleRank(model, 2, 1, "0F0 1F0 1B0 0B0"); });
  };
  const std::string both = "first/table and table of layer 3 (pipeline ranks 0 and 0) are tied, but";
  EXPECT_EQ(error_if([](ParamSpec& spec) { spec.site = 50; }), "no error"); // the first is drawn
  EXPECT_EQ(error_if([](ParamSpec& spec) { spec.init.std = 2; }), both + " have different initial values");
  EXPECT_EQ(error_if([](ParamSpec& spec) { spec.init = {}; }), both + " have different initial values");
  EXPECT_EQ(error_if([](ParamSpec& spec) { spec.decay = true; }), both + " weight decay applies to one of them only");
  EXPECT_EQ(error_if([](ParamSpec& spec) { spec.global = {7, 4}; }), both + " are [5, 4] and [7, 4]");
}

} // namespace
} // namespace triax
