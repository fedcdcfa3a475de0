// SPDX-License-Identifier: Apache-2.0
// Preflight: what it refuses, and what it reports about a valid run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "data/prepare.hpp"
#include "train/preflight.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

void expect_same_memory(const std::vector<train::MemoryRow>& planned, const std::vector<train::MemoryRow>& real) {
  ASSERT_EQ(planned.size(), real.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    EXPECT_EQ(planned[i].what, real[i].what);
    EXPECT_EQ(planned[i].bytes, real[i].bytes) << real[i].what;
  }
}

/// Memory that each rank allocates.
std::vector<std::vector<train::MemoryRow>> memory_of_ranks(const config::RunConfig& config) {
  const Layout layout = train::layout_of(config);
  std::vector<std::vector<train::MemoryRow>> out(static_cast<std::size_t>(layout.world()));
  control::LocalStore store;
  std::vector<std::thread> threads;
  for (int number = 0; number < layout.world(); ++number)
    threads.emplace_back([&, number] {
      const train::Rank rank(config, layout, number, store, null_log());
      out[static_cast<std::size_t>(number)] = rank.memory();
    });
  for (std::thread& thread : threads) thread.join();
  return out;
}

/// A run with real data files: 400 bytes of text.
class PreflightTest : public ::testing::Test {
 protected:
  PreflightTest() {
    std::string text;
    while (text.size() < 400) text += "abc def gh\n";
    test::write_file(run_.folder() / "text.txt", text);
    data::PrepareRequest request;
    request.inputs = {run_.folder() / "text.txt"};
    request.output = run_.folder() / "text";
    request.tokenizer.name = "byte";
    request.force = true;
    data::prepare(request, [](std::uint64_t, std::uint64_t) {});
    run_.keys.erase("model.vocab");
  }
  std::vector<std::string> refusals() {
    std::vector<std::string> out;
    const config::RunConfig config = run_.config();
    train::Placement placement = train::choose_placement(config);
    placement.ranks_are_threads = ranks_are_threads_;
    for (const Refusal& refusal : train::preflight(config, placement, null_log(), devices_).refusals)
      out.push_back(refusal.message + (refusal.hint.empty() ? "" : "\n  " + refusal.hint));
    return out;
  }
  TinyRun run_;
  bool ranks_are_threads_ = true;
  train::CheckedDevices devices_;
};

TEST_F(PreflightTest, ReportsLayersParametersAndTheMemoryThatTheRankTakes) {
  const config::RunConfig config = run_.config();
  const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
  EXPECT_TRUE(checked.refusals.empty());
  ASSERT_EQ(checked.plans.size(), 1u);
  EXPECT_THAT(checked.plans[0].ranks, ElementsAre(0));
  EXPECT_THAT(checked.plans[0].layers, ElementsAre("embedding", "block 0", "block 1", "head"));
  const std::int64_t block = 12 * 8 * 8 + 13 * 8; // weights, and biases with norms
  EXPECT_EQ(checked.parameters, 257 * 8 + 6 * 8 + 2 * block + 2 * 8);

  test::TinyRank rank(config);
  const std::vector<train::MemoryRow> real = rank->memory();
  expect_same_memory(checked.plans[0].memory, real);
}

TEST_F(PreflightTest, AnEvaluationOfAnyLengthIsSized) {
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["eval.every"] = "1";
  run_.keys["eval.batches"] = "9223372036854775807";
  const config::RunConfig config = run_.config();
  EXPECT_TRUE(train::preflight(config, train::choose_placement(config), null_log()).refusals.empty());
}

TEST_F(PreflightTest, PlansEachRankAsItWillBe) {
  run_.keys["parallel.pipeline"] = "2";
  run_.keys["parallel.data"] = "2";
  run_.keys["parallel.tensor"] = "2"; // 257 tokens: 129 rows per rank, one of them padding
  const config::RunConfig config = run_.config();
  const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
  ASSERT_TRUE(checked.refusals.empty());
  ASSERT_EQ(checked.plans.size(), 4u); // data ranks are equal
  EXPECT_THAT(checked.plans[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(checked.plans[1].ranks, ElementsAre(1, 3));
  EXPECT_THAT(checked.plans[2].ranks, ElementsAre(4, 6));
  EXPECT_EQ(checked.plans[1].tensor, 1);
  EXPECT_EQ(checked.plans[2].pipeline, 1);
  EXPECT_THAT(checked.plans[1].layers, ElementsAre("embedding", "block 0"));
  EXPECT_THAT(checked.plans[2].layers, ElementsAre("block 1", "head"));

  const std::vector<std::vector<train::MemoryRow>> real = memory_of_ranks(config);
  for (const train::RankPlan& plan : checked.plans)
    for (const int number : plan.ranks) expect_same_memory(plan.memory, real.at(static_cast<std::size_t>(number)));
}

TEST_F(PreflightTest, NamesAPluginThatRefusesWithoutAReason) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["schedule.plugin"] = "\"sched-crashing\"";
  run_.keys["schedule.where"] = "\"supports\"";
  run_.keys["schedule.how"] = "\"refuse\"";
  EXPECT_THAT(refusals(), ElementsAre("schedule.plugin \"sched-crashing\": it refuses the run and gives no reason\n"
                                      "  this is a defect of the plugin: report it to its author"));
}

TEST_F(PreflightTest, PlansReductionsOverAProductOfAxes) {
  test::use_divided_model(run_);
  run_.keys["parallel.pipeline"] = run_.keys["parallel.tensor"] = run_.keys["parallel.data"] = "2";
  const config::RunConfig config = run_.config();
  const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
  EXPECT_TRUE(checked.refusals.empty());
  const std::vector<test::RankTrace> ranks = test::train_ranks(run_, 1);
  int compared = 0;
  for (const train::RankPlan& plan : checked.plans)
    for (std::size_t i = 0; i < plan.ranks.size(); ++i, ++compared) {
      const std::vector<report::GroupTraffic>&planned = plan.traffic[i],
            &counted = ranks[static_cast<std::size_t>(plan.ranks[i])].traffic;
      EXPECT_THAT(planned, Contains(Field(&report::GroupTraffic::group, "tensor*data")));
      ASSERT_EQ(planned.size(), counted.size());
      for (std::size_t group = 0; group < planned.size(); ++group) {
        EXPECT_EQ(planned[group].group, counted[group].group);
        EXPECT_EQ(planned[group].ops, counted[group].ops) << planned[group].group;
        EXPECT_EQ(planned[group].bytes_out, counted[group].bytes_out) << planned[group].group;
        EXPECT_EQ(planned[group].bytes_in, counted[group].bytes_in) << planned[group].group;
      }
    }
  EXPECT_EQ(compared, 8);
}

/// They would wait for each other indefinitely.
TEST_F(PreflightTest, RefusesRanksOfATensorGroupWithDifferentCollectives) {
  run_.keys["model.plugin"] = "\"model-uneven\"";
  for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.sequence", "model.dropout"})
    run_.keys.erase(key);
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["parallel.tensor"] = run_.keys["batch.micro"] = "2";
  const auto refused_if = [this](const char* how) {
    run_.keys["model.how"] = how;
    return refusals();
  };
  EXPECT_THAT(refused_if("\"none\""), ElementsAre());
  EXPECT_THAT(
      refused_if("\"size\""),
      ElementsAre("model-uneven: the ranks of a tensor group post different collectives in F of stage 0: call 1 "
                  "is all_reduce of 2 f64 (sum) on tensor rank 0 and all_reduce of 1 f64 (sum) on tensor rank "
                  "1\n  this is a defect of the model: use parallel.tensor 1, or report it to its author"));
  EXPECT_THAT(refused_if("\"count\""),
              ElementsAre(HasSubstr("in F of stage 0: tensor rank 0 posts 1, tensor rank 1 posts 2")));
  EXPECT_THAT(refused_if("\"evaluation\""),
              ElementsAre(HasSubstr("in F of stage 0 of an evaluation: tensor rank 0 posts 1, tensor rank 1 posts 2")));
  run_.keys["parallel.data"] = "2"; // the gradients of rank 0 are added over a product of axes
  EXPECT_THAT(refused_if("\"partial\""),
              ElementsAre(HasSubstr("in REDUCE_GRAD of stage 0: tensor rank 0 posts 1, tensor rank 1 posts 0")));
}

/// With whole and split backwards, on every rank.
TEST_F(PreflightTest, ReportsThePartsOfTheActivations) {
  run_.keys["parallel.pipeline"] = "2";
  const auto plans = [this] {
    const config::RunConfig config = run_.config();
    return train::preflight(config, train::choose_placement(config), null_log()).plans;
  };
  for (const char* scheduler : {"\"sched-gpipe\"", "\"sched-zb-h1\""}) {
    run_.keys["schedule.plugin"] = scheduler;
    for (const train::RankPlan& plan : plans()) {
      std::size_t together = 0;
      for (const executor::ActivationPart& part : plan.activations) together += part.total();
      const auto row = std::ranges::find(plan.memory, "activations", &train::MemoryRow::what);
      ASSERT_NE(row, plan.memory.end());
      EXPECT_EQ(together, row->bytes) << scheduler << ", pipeline rank " << plan.pipeline;
    }
  }
  run_.keys["model.layers"] = "4";
  run_.keys["schedule.plugin"] = "\"sched-gpipe\"";
  const std::vector<train::RankPlan> gpipe = plans();
  const auto block = std::ranges::find(gpipe.at(0).activations, "block", &executor::ActivationPart::what);
  ASSERT_NE(block, gpipe[0].activations.end());
  EXPECT_EQ(block->layers, 2);
  EXPECT_EQ(block->microbatches, 4); // GPipe keeps all of them
}

TEST_F(PreflightTest, ReportsTheCostOfUnevenStages) {
  run_.keys["parallel.pipeline"] = "2";
  const config::RunConfig config = run_.config();
  const train::Balance balance = train::preflight(config, train::choose_placement(config), null_log()).balance;
  ASSERT_EQ(balance.stages.size(), 2u);
  EXPECT_EQ(balance.stages[0].layers, 2); // embedding, block
  EXPECT_EQ(balance.stages[1].pipeline, 1);
  ASSERT_TRUE(balance.step.has_value());
  // GPipe with two stages, of which the second is slower: a forward of the first, all passes of the second, a backward
  // of the first.
  const auto backward = [](const Cost& of) { return of.backward_input + of.backward_weight; };
  const Cost &first = balance.stages[0].flops, &second = balance.stages[1].flops;
  const double all = balance.stages[0].all_flops() + balance.stages[1].all_flops();
  const double own = first.forward + 4 * second.forward + 4 * backward(second) + backward(first);
  const double even = (4 + 1) * all / 2;
  EXPECT_GT(own, even);
  EXPECT_NEAR(balance.step->longer, own / even - 1, 1e-9);
  EXPECT_NEAR(balance.step->idle, 1 - 4 * all / 2 / own, 1e-9);
  EXPECT_NEAR(balance.step->even_idle, 1.0 / 5, 1e-9);

  run_.keys["parallel.pipeline"] = "1";
  const config::RunConfig alone = run_.config();
  EXPECT_FALSE(train::preflight(alone, train::choose_placement(alone), null_log()).balance.step.has_value());
}

// Tied parameters of two pipeline ranks count once, as do the parts of tensor ranks and the replicas of data ranks.
TEST_F(PreflightTest, CountsTheParametersOfTheModelNotOfItsRanks) {
  const auto parameters = [this] {
    const config::RunConfig config = run_.config();
    return train::preflight(config, train::choose_placement(config), null_log()).parameters;
  };
  const std::int64_t one_rank = parameters();
  run_.keys["parallel.data"] = "2";
  EXPECT_EQ(parameters(), one_rank);
  run_.keys["parallel.tensor"] = "2";
  EXPECT_EQ(parameters(), one_rank);
  run_.keys["parallel.pipeline"] = "2";
  EXPECT_EQ(parameters(), one_rank);
}

TEST_F(PreflightTest, AskWhetherCommunicatorsReachFromRankToRank) {
  run_.keys["parallel.data"] = "2";
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["comm.plugin"] = "\"comm-processes\"";
  EXPECT_THAT(
      refusals(),
      ElementsAre(
          "comm.plugin \"comm-processes\" for the data axis: it requires one process per rank, but the 2 ranks of this "
          "run are threads of one process\n  use comm-local, or another communicator for threads of one process"));
  run_.keys["comm.plugin"] = "\"comm-local\"";
  run_.keys["comm.tensor.plugin"] = "\"comm-processes\""; // not checked for an axis of one rank
  EXPECT_THAT(refusals(), ElementsAre());
  run_.keys["parallel.tensor"] = "2";
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("comm.tensor.plugin \"comm-processes\" for the tensor axis: it requires one "
                                    "process per rank")));

  ranks_are_threads_ = false;
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("comm.plugin \"comm-local\" for the data axis: it joins threads of one "
                                                "process, but the 4 ranks of this run are processes")));
}

TEST_F(PreflightTest, ACommunicatorOfSeveralAxesIsRefusedOnceForEachText) {
  run_.keys["parallel.data"] = run_.keys["parallel.pipeline"] = run_.keys["parallel.tensor"] = "2";
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  const std::string why = ": comm-local moves host memory; the kernel set's device is cuda";
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("comm.plugin \"comm-local\" for the data, pipeline and tensor axes" + why)));
  run_.keys["comm.tensor.plugin"] = "\"comm-local\"";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("comm.plugin \"comm-local\" for the data and pipeline axes, "
                                                "comm.tensor.plugin \"comm-local\" for the tensor axis" +
                                                why)));
  run_.keys["comm.data.plugin"] = "\"comm-processes\"";
  EXPECT_THAT(
      refusals(),
      ElementsAre(
          HasSubstr("comm.plugin \"comm-local\" for the pipeline axis, comm.tensor.plugin "
                    "\"comm-local\" for the tensor axis" +
                    why),
          HasSubstr("comm.data.plugin \"comm-processes\" for the data axis: it requires one process per rank")));
}

// [comm.tensor] without `plugin` inherits that of [comm], so one error names both axes.
TEST_F(PreflightTest, ATableThatInheritsItsCommunicatorIsReportedWithTheOneThatNamesIt) {
  run_.keys["parallel.data"] = run_.keys["parallel.tensor"] = "2";
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  run_.keys["comm.plugin"] = "\"comm-processes\"";
  run_.keys["comm.tensor.retries"] = "2";
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("comm.plugin \"comm-processes\" for the data and tensor axes: it requires")));
}

TEST_F(PreflightTest, AsksWhetherAStepCanBeRecorded) {
  run_.keys["train.cuda_graph"] = "true";
  EXPECT_THAT(refusals(),
              ElementsAre("train.cuda_graph: kernels.plugin \"kernels-reference\" computes on a host device, which has "
                          "no CUDA graphs\n  leave train.cuda_graph out, or use a kernel set for "
                          "GPUs"));
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  EXPECT_THAT(refusals(), ElementsAre());
  run_.keys["parallel.data"] = "2";
  run_.keys["comm.plugin"] = "\"comm-processes\"";
  ranks_are_threads_ = false;
  EXPECT_THAT(
      refusals(),
      ElementsAre(
          "train.cuda_graph: comm.plugin \"comm-processes\" for the data axis: the host advances its calls, so a "
          "CUDA graph cannot contain them\n  leave train.cuda_graph out, or use a communicator "
          "whose calls run on the GPU's streams"));
  run_.keys["parallel.pipeline"] = "2";
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("comm.plugin \"comm-processes\" for the data and pipeline axes: the host")));
}

TEST_F(PreflightTest, AsksForTheDevicesOfTheGivenRanks) {
  run_.keys["parallel.data"] = "4";
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["comm.plugin"] = "\"comm-processes\"";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  ranks_are_threads_ = false;
  EXPECT_THAT(refusals(), ElementsAre()) << "a run that is only looked at needs no device";
  devices_ = {0, 2};
  EXPECT_THAT(refusals(), ElementsAre());
  devices_ = {0, 4};
  const char* const third = "kernels.plugin \"kernels-elsewhere\": rank 2 of 4 has no device\n  use two";
  EXPECT_THAT(refusals(), ElementsAre(third)) << "one speaks for all";
  devices_ = {3, 1};
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("rank 3 of 4 has no device")));
  devices_ = {0, 2};
  run_.keys["model.hidden"] = "128";
  EXPECT_THAT(refusals(), ElementsAre("kernels.plugin \"kernels-elsewhere\": a rank needs more than a megabyte"));
  run_.keys["model.heads"] = "3";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("model.heads = 3"))) << "nothing was planned, so no size is known";
}

/// Reported once, although each layer of each rank uses the operation.
TEST_F(PreflightTest, AnOperationThatTheKernelSetRefusesIsReportedAsTheSets) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  run_.keys["model.heads"] = "4";
  EXPECT_THAT(refusals(),
              ElementsAre("kernels.plugin \"kernels-elsewhere\": attention of more than two heads\n  use fewer"));
}

TEST_F(PreflightTest, AnOptimizerGetsTheDeviceOfTheWeights) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["optimizer.plugin"] = "\"optim-host\"";
  EXPECT_THAT(refusals(), ElementsAre());
  run_.keys["optimizer.weight_decay"] = "0";
  const std::vector<double> on_host = test::train(run_, 3).losses;
  run_.keys["optimizer.plugin"] = "\"optim-sgd\"";
  EXPECT_THAT(on_host, ::testing::Pointwise(::testing::DoubleNear(1e-6), test::train(run_, 3).losses));

  run_.keys["optimizer.plugin"] = "\"optim-host\"";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  EXPECT_THAT(refusals(), ElementsAre("optimizer.plugin \"optim-host\": optim-host updates weights in host memory; "
                                      "they are on a cuda device\n  use an "
                                      "optimizer that computes through the kernel set, or a kernel set on the host"));
}

TEST_F(PreflightTest, TimesOfPassesAreKnownOnTheHostAlone) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  run_.keys["log.timeline"] = "2";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("log.timeline = 2: kernels.plugin \"kernels-elsewhere\" computes on a "
                                                "cuda device")));
}

TEST_F(PreflightTest, ARankGetsTheDeviceOfItsSetOrNone) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  const auto error_of = [this](int local_rank) -> std::string {
    train::RankOptions options;
    options.local_rank = local_rank;
    options.local_ranks = 3;
    try {
      const test::TinyRank rank(run_, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of(2), "kernels.plugin \"kernels-elsewhere\": rank 2 of 3 has no device\n  use two");
  EXPECT_THAT(
      error_of(1),
      HasSubstr(
          "kernels-elsewhere, make_device(): kernels-elsewhere computes on a cuda device, but does not create it"));
}

TEST_F(PreflightTest, RefusesWorldsBeyondMeasure) {
  run_.keys["parallel.pipeline"] = "65536";
  run_.keys["parallel.tensor"] = "65536";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("is more than 1048576 ranks")));
}

TEST_F(PreflightTest, ListsRefusalsOfSeveralPluginsTogether) {
  run_.keys["model.heads"] = "3";
  run_.keys["parallel.chunks"] = "2";
  run_.keys["data.path"] = "\"text\"";
  run_.keys["model.vocab"] = "50";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("model.hidden = 8 is not divisible by model.heads = 3"),
                                      HasSubstr("parallel.chunks = 2: sched-gpipe"),
                                      HasSubstr("but model.vocab = 50 has the ids")));
}

TEST_F(PreflightTest, RefusesASplitThatDoesNotCount) {
  run_.keys["parallel.split"] = "[3]";
  EXPECT_THAT(refusals(), ElementsAre("parallel.split counts 3 blocks, but model.layers is 2\n  list one number of "
                                      "blocks for each stage; together 2"));
}

TEST_F(PreflightTest, RefusesDataThatDoesNotSuit) {
  run_.keys["model.sequence"] = "1000";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("one sample of model.sequence = 1000 takes 1001")));
  run_.keys["model.sequence"] = "6";
  run_.keys["model.vocab"] = "50";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("but model.vocab = 50 has the ids")));
}

} // namespace
} // namespace triax
