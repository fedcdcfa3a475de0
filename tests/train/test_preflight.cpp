// SPDX-License-Identifier: Apache-2.0
// What preflight refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/preflight_run.hpp"

namespace triax {
namespace {

using test::PreflightTest;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(PreflightTest, AnEvaluationOfAnyLengthIsSized) {
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["eval.every"] = "1";
  run_.keys["eval.batches"] = "2147483647";
  const config::RunConfig config = run_.config();
  EXPECT_TRUE(train::preflight(config, train::choose_placement(config), null_log()).refusals.empty());
}

TEST_F(PreflightTest, NamesAPluginThatRefusesWithoutAReason) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["schedule.plugin"] = "\"sched-crashing\"";
  run_.keys["schedule.where"] = "\"supports\"";
  run_.keys["schedule.how"] = "\"refuse\"";
  EXPECT_THAT(refusals(), ElementsAre("schedule.plugin \"sched-crashing\": it refuses the run and gives no reason\n"
                                      "  this is a defect of the plugin: report it to its author"));
}

TEST_F(PreflightTest, NamesAPluginWhoseRefusalNamesNoKeyOfTheRun) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["schedule.plugin"] = "\"sched-crashing\"";
  run_.keys["schedule.where"] = "\"supports\"";
  run_.keys["schedule.how"] = "\"misname\"";
  EXPECT_THAT(refusals(), ElementsAre("schedule.plugin \"sched-crashing\": too many chunks\n"
                                      "  change the run as the message says, or choose another schedule.plugin"));
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

TEST_F(PreflightTest, NamesTheModelWhoseDescriptionsFail) {
  run_.keys["model.plugin"] = "\"model-uneven\"";
  for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.sequence", "model.dropout"})
    run_.keys.erase(key);
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  const auto refused_if = [this](const char* how) {
    run_.keys["model.how"] = how;
    return refusals();
  };
  const std::string named = "model.plugin \"model-uneven\": in ", next = "\n  report this to the author of the plugin";
  EXPECT_THAT(
      refused_if("\"no_layer\""),
      ElementsAre(HasSubstr(named + "layer() of plugin \"model-uneven\": the model returns no layer 0" + next)));
  EXPECT_THAT(refused_if("\"params_throws\""),
              ElementsAre(HasSubstr(named + "params() of plugin \"model-uneven\": no table of parameters" + next)));
  EXPECT_THAT(refused_if("\"ties_throws\""),
              ElementsAre(HasSubstr(named + "ties() of plugin \"model-uneven\": no table of ties" + next)));
  EXPECT_THAT(refused_if("\"nan_flops\""),
              ElementsAre(HasSubstr(named +
                                    "flops_per_sample() of plugin \"model-uneven\": nan is not a number of "
                                    "operations" +
                                    next)));
  EXPECT_THAT(
      refused_if("\"many_layers\""),
      ElementsAre(HasSubstr("model.plugin \"model-uneven\": count(): 2147483647 layers are more than 65536" + next)));
}

/// The dry run finds them, when it puts the layers together.
TEST_F(PreflightTest, NamesTheModelWhoseDescriptionsContradictEachOther) {
  run_.keys["model.plugin"] = "\"model-uneven\"";
  for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.sequence", "model.dropout"})
    run_.keys.erase(key);
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  const auto refused_if = [this](const char* how) {
    run_.keys["model.how"] = how;
    return refusals();
  };
  const std::string named = "model.plugin \"model-uneven\": ",
                    next =
                        "\n  this is a defect of the model: report it to its author; \"triax plugins test "
                        "model-uneven\" lists its defects";
  EXPECT_THAT(refused_if("\"two_losses\""), ElementsAre(named + "uneven makes \"loss\" twice" + next));
  EXPECT_THAT(refused_if("\"stash_changes\""),
              ElementsAre(named + "uneven: stash() lists other tensors at its second call" + next));
  run_.keys["parallel.tensor"] = run_.keys["batch.micro"] = "2";
  EXPECT_THAT(refused_if("\"ties_differ\""),
              ElementsAre(named +
                          "ties() differs between ranks: entry 1 is nothing on pipeline 0, data 0, tensor 0, but "
                          "\"w\" of layer 0 and \"v\" of layer 0 on pipeline 0, data 0, tensor 1" +
                          next));
}

TEST_F(PreflightTest, RefusesRowsOfMoreActionsThanAnyStepHas) {
  run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run_.keys["schedule.plugin"] = "\"sched-crashing\"";
  run_.keys["schedule.where"] = "\"rows\"";
  run_.keys["schedule.how"] = "\"flood\"";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("schedule.plugin \"sched-crashing\": rows(): 2097153 actions are more "
                                                "than 2097152\n  report this to the author of the plugin")));
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
  const std::string why = ": comm-local moves host memory; the kernel set's device is CUDA";
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

TEST_F(PreflightTest, ACommunicatorNamesItsOptionsInAnyTable) {
  run_.keys["parallel.data"] = run_.keys["parallel.tensor"] = "2";
  run_.keys["comm.plugin"] = "\"comm-faulty\"";
  run_.keys["comm.inner"] = "\"comm-local\"";
  run_.keys["comm.rank"] = "4";
  const auto expect = [this](const std::string& tables, const std::vector<std::string>& keys) {
    const Refusals found = refused();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().message, tables + ": rank = 4: the run has 4 ranks, counted from 0");
    EXPECT_EQ(found.front().keys, keys);
  };
  expect("comm.plugin \"comm-faulty\" for the data and tensor axes", {"comm.rank", "comm.plugin"});
  run_.keys["comm.tensor.at"] = "1"; // inherits the plugin and its rank
  expect("comm.plugin \"comm-faulty\" for the data and tensor axes", {"comm.rank", "comm.plugin"});
  run_.keys["comm.tensor.rank"] = "4";
  expect("comm.plugin \"comm-faulty\" for the data and tensor axes", {"comm.rank", "comm.tensor.rank", "comm.plugin"});
  run_.keys["comm.data.plugin"] = "\"comm-local\"";
  expect("comm.plugin \"comm-faulty\" for the tensor axis", {"comm.tensor.rank", "comm.plugin"});
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
  EXPECT_THAT(refusals(), ElementsAre("kernels.plugin \"kernels-elsewhere\": a rank needs more than a megabyte\n"
                                      "  change the run as the message says, or choose another kernels.plugin"));
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

/// RepeatLimits: reported once, although each block uses the operation, and only with "cheap".
TEST_F(PreflightTest, AnOperationThatTheKernelSetCannotRepeatIsRefusedWithCheapRecomputation) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  EXPECT_THAT(refusals(), ElementsAre());
  run_.keys["memory.recompute"] = "\"cheap\"";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("activations in f32 cannot be repeated\n  use bf16")));
  run_.keys["train.precision"] = "\"bf16\"";
  EXPECT_THAT(refusals(), Not(Contains(HasSubstr("cannot be repeated"))));
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
                                      "they are on a CUDA device\n  use an "
                                      "optimizer that computes through the kernel set, or a kernel set on the host"));
}

TEST_F(PreflightTest, AnImpossibleSizeIsReported) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["optimizer.plugin"] = "\"optim-host\"";
  run_.keys["optimizer.traits"] = "\"scratch\"";
  EXPECT_THAT(refusals(),
              ElementsAre(HasSubstr("scratch_bytes() returned 18446744073709551615: no machine has this many bytes")));
}

TEST_F(PreflightTest, TimesOfPassesAreKnownOnTheHostAlone) {
  run_.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run_.keys["kernels.plugin"] = "\"kernels-elsewhere\"";
  run_.keys["log.timeline"] = "2";
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("log.timeline = 2: kernels.plugin \"kernels-elsewhere\" computes on a "
                                                "CUDA device")));
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
          "kernels-elsewhere, make_device(): kernels-elsewhere computes on a CUDA device, but does not create it"));
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
                                      HasSubstr("which is not in [0, 49] (model.vocab = 50)")));
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
  EXPECT_THAT(refusals(), ElementsAre(HasSubstr("which is not in [0, 49] (model.vocab = 50)")));
}

} // namespace
} // namespace triax
