// SPDX-License-Identifier: Apache-2.0
// States that share the description of a model: they have what each of them describes alone, and create its own layers
// only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/state_of.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

using executor::RankState;
using test::error_of;
using test::sample_model;
using test::SampleModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Notes which layers are created.
class CountedModel final : public Model {
 public:
  explicit CountedModel(SampleModel model) : of(std::move(model)) {}
  ModelInfo info() const override { return of.info(); }
  Refusals supports(const ModelRequest& request, const Layout& layout) const override {
    return of.supports(request, layout);
  }
  int count() const override { return of.count(); }
  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    created.push_back(index);
    SampleModel on_rank = of;
    if (change && context.rank > 0) change(on_rank);
    return std::make_unique<test::SampleLayer>(on_rank.specs.at(static_cast<std::size_t>(index)), of.notes);
  }
  std::span<const Tie> ties() const override { return of.ties(); }
  double flops_per_sample(std::int64_t vocab) const override { return of.flops_per_sample(vocab); }

  SampleModel of;
  std::function<void(SampleModel&)> change; // what layers of all ranks but the first are like
  mutable std::vector<int> created;
};

/// Two pipeline ranks, whose first and last layers are tied.
class Described : public ::testing::Test {
 protected:
  Described() {
    model_.of.tied = {{0, "table", 3, "table"}};
    const PipelineShape shape{2, 1, 1};
    const Schedule rows = test::schedule_of(shape, {0, 1}, {"0F0 0B0", "1F0 1B0"});
    training_ = schedule::lower(rows, shape);
    evaluation_ = schedule::lower_forward_only(rows, shape);
  }

  LayerContext context(int rank) const { return {layout_, layout_.group(0, kPipelineAxis).ranks.at(at(rank)), 2, 5}; }

  std::shared_ptr<const executor::ModelDescription> describe() const {
    return std::make_shared<executor::ModelDescription>(model_, context(0), executor::split_layers(model_, 2, {}),
                                                        training_.front().stage_map(), executor::MemoryTypes{},
                                                        kSharding);
  }

  std::unique_ptr<RankState> state(int rank, std::shared_ptr<const executor::ModelDescription> described) const {
    const executor::RankRequest request{.model = model_,
                                        .optimizer = optimizer_,
                                        .context = context(rank),
                                        .types = {},
                                        .split = executor::split_layers(model_, 2, {}),
                                        .batch = {1, 2, 3, 1, 0},
                                        .sharding = kSharding,
                                        .described = std::move(described)};
    return std::make_unique<RankState>(request, training_[at(rank)], evaluation_[at(rank)]);
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  static constexpr schedule::Sharding kSharding = schedule::Sharding::none;
  CountedModel model_{sample_model()};
  Layout layout_ = Layout::ptd(2, 1, 1);
  OptimizerTraits optimizer_{{"m"}};
  std::vector<schedule::Program> training_, evaluation_;
};

/// Parameters, by name, with where they are stored and how large they are.
std::vector<std::string> to_texts(const RankState& state) {
  std::vector<std::string> out;
  const executor::Parameters& parameters = state.parameters();
  for (const executor::Parameter& parameter : parameters.all())
    out.push_back(text("{} {} in layer {}, owned {} + {}, {} accumulators", parameter.name, parameter.spec->local,
                       parameter.layer, parameter.owned.first, parameter.owned.count, parameter.exchanged.size()));
  for (const executor::GlobalParameter& parameter : parameters.global())
    out.push_back(text("{} is number {} of rank {}", parameter.name, parameter.index, parameter.rank));
  for (const executor::RankMemory::Row& row : state.memory({})) out.push_back(text("{}: {} B", row.what, row.bytes));
  return out;
}

TEST_F(Described, StatesAreThoseThatDescribeTheModelAlone) {
  const auto described = describe();
  for (const int rank : {0, 1}) {
    const std::vector<std::string> shared = to_texts(*state(rank, described));
    EXPECT_EQ(shared, to_texts(*state(rank, nullptr))) << rank;
    EXPECT_THAT(shared, ::testing::Contains(HasSubstr("first/table"))) << rank; // stored on both
  }
}

TEST_F(Described, StatesCreateTheirOwnLayersOnly) {
  const auto described = describe();
  EXPECT_THAT(model_.created, ElementsAre(0, 1, 2, 3));
  model_.created.clear();
  state(1, described);
  EXPECT_THAT(model_.created, ElementsAre(2, 3, 0)); // layer 3 is tied to layer 0
  model_.created.clear();
  state(1, nullptr);
  EXPECT_THAT(model_.created, ElementsAre(0, 1, 2, 3));
}

TEST_F(Described, AnotherDescriptionIsRefused) {
  const auto described = describe();
  model_.of.specs[2].params.front().local = model_.of.specs[2].params.front().global = {6};
  EXPECT_THAT(error_of([&] { state(1, described); }),
              HasSubstr("layer 2: mid has other parameters on another pipeline rank"));
  model_.of.specs[2].params.clear();
  EXPECT_THAT(error_of([&] { state(1, described); }), HasSubstr("layer 2: mid has other parameters"));
  EXPECT_EQ(error_of([&] { state(0, described); }), "no error"); // it has other layers
}

/// The error of the second of two pipeline ranks, whose description of a parameter of `layer` has one mistake.
class TiesOfRanks : public Described {
 protected:
  std::string error_if(std::size_t layer, const std::function<void(ParamSpec&)>& change) {
    model_.change = [layer, change](SampleModel& model) { change(model.specs[layer].params.front()); };
    return error_of([&] { state(1, describe()); });
  }
};

TEST_F(TiesOfRanks, EachPropertyIsTheSameOnBothRanks) {
  const std::string ranks = " on pipeline 1, data 0, tensor 0";
  EXPECT_EQ(error_if(0, [](ParamSpec&) {}), "no error");
  EXPECT_EQ(error_if(0,
                     [](ParamSpec& spec) {
                       spec.global = spec.local = {6, 4};
                     }),
            "first/table is tied to table of layer 3, and ranks describe it differently: shape: [5, 4] on pipeline "
            "0, data 0, tensor 0, but [6, 4]" +
                ranks);
  EXPECT_EQ(error_if(0, [](ParamSpec& spec) { spec.init.std = 2; }),
            "first/table is tied to table of layer 3, and ranks describe it differently: initial values: normal "
            "with std 1 on pipeline 0, data 0, tensor 0, but normal with std 2" +
                ranks);
  EXPECT_EQ(error_if(3, [](ParamSpec& spec) { spec.init.kind = Init::Kind::ones; }),
            "last/table is tied to table of layer 0, and ranks describe it differently: initial values: normal "
            "with std 1 on pipeline 0, data 0, tensor 0, but ones" +
                ranks);
  EXPECT_THAT(error_if(0, [](ParamSpec& spec) { spec.site = 2; }), HasSubstr("random site: 1 on"));
  EXPECT_THAT(error_if(0, [](ParamSpec& spec) { spec.decay = true; }), HasSubstr("weight decay: no on"));
  EXPECT_THAT(error_if(0, [](ParamSpec& spec) { spec.partial = {"tensor"}; }),
              HasSubstr("partial gradients: no axis on pipeline 0, data 0, tensor 0, but tensor" + ranks));
  EXPECT_THAT(error_if(0, [](ParamSpec& spec) { spec.local = {6, 4}; }), HasSubstr("stored shape: [5, 4] on"));
  EXPECT_THAT(
      error_if(3,
               [](ParamSpec& spec) {
                 spec.cuts = {{"tensor", 0, 0, 5}};
               }),
      HasSubstr("cuts: none on pipeline 0, data 0, tensor 0, but [0, 5) of dimension 0 over axis tensor" + ranks));
  EXPECT_EQ(error_if(0, [](ParamSpec& spec) { spec.name = "tabel"; }),
            "first/table is tied to table of layer 3, but pipeline 1, data 0, tensor 0 does not describe it");
}

TEST_F(TiesOfRanks, ParametersThatAreNotTiedAreNotCompared) {
  EXPECT_EQ(error_if(1, [](ParamSpec& spec) { spec.init.std = 2; }), "no error"); // on rank 0 only
  EXPECT_EQ(error_if(2, [](ParamSpec& spec) { spec.init.std = 2; }), "no error");
}

TEST_F(TiesOfRanks, TheListsOfTiesAreTheSame) {
  const auto described = describe();
  model_.of.tied = {};
  EXPECT_EQ(error_of([&] { state(1, described); }),
            "ties() differs between ranks: entry 1 is \"table\" of layer 0 and \"table\" of layer 3 on pipeline 0, "
            "data 0, tensor 0, but nothing on pipeline 1, data 0, tensor 0");
  model_.of.tied = {{0, "table", 2, "a"}};
  EXPECT_THAT(error_of([&] { state(1, described); }),
              HasSubstr("but \"table\" of layer 0 and \"a\" of layer 2 on pipeline 1"));
}

TEST_F(TiesOfRanks, TensorRanksDescribeTheSameWholeParameter) {
  layout_ = Layout::ptd(2, 2, 1);
  model_.of.specs[0].params.front().cuts = model_.of.specs[3].params.front().cuts = {{"tensor", 0, 0, 3}};
  const auto error_with = [this](const std::function<void(ParamSpec&)>& change) {
    model_.change = nullptr;
    const auto first = describe();
    model_.change = [change](SampleModel& model) {
      change(model.specs[0].params.front());
      change(model.specs[3].params.front());
    };
    const executor::ModelDescription second(model_, {layout_, 1, 2, 5}, executor::split_layers(model_, 2, {}),
                                            training_.front().stage_map(), executor::MemoryTypes{}, kSharding);
    return error_of([&] { first->check_ties(second); });
  };
  EXPECT_EQ(error_with([](ParamSpec& spec) { spec.cuts = {{"tensor", 0, 3, 5}}; }), "no error");
  EXPECT_EQ(error_with([](ParamSpec& spec) { spec.init.std = 2; }),
            "first/table is tied to table of layer 3, and ranks describe it differently: initial values: normal "
            "with std 1 on pipeline 0, data 0, tensor 0, but normal with std 2 on pipeline 0, data 0, tensor 1");
}

} // namespace
} // namespace triax
