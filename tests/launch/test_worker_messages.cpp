// SPDX-License-Identifier: Apache-2.0
// Messages from ranks to the launcher round-trip with the same bits, and traffic of all ranks is added.
#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "launch/worker_messages.hpp"
#include "support/error_of.hpp"

namespace triax::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using triax::test::error_of;

report::StepRecord step() {
  report::StepRecord out;
  out.step = 7;
  out.loss = 0.1 + 0.2;
  out.tokens_per_s = 1e5 / 3;
  out.step_ms = 1.0 / 7;
  return out;
}

TEST(WorkerMessage, AStepReadsBackToTheSameBits) {
  report::StepRecord sent = step();
  report::StepRecord read = read_step(to_line(sent));
  EXPECT_EQ(read.step, sent.step);
  EXPECT_EQ(read.loss, sent.loss);
  EXPECT_EQ(read.tokens_per_s, sent.tokens_per_s);
  EXPECT_EQ(read.step_ms, sent.step_ms);
  EXPECT_FALSE(read.eval_loss);
  sent.eval_loss = 2.0 / 3;
  EXPECT_EQ(read_step(to_line(sent)).eval_loss, sent.eval_loss);
  EXPECT_FALSE(read.skipped);
  sent.skipped = true;
  EXPECT_TRUE(read_step(to_line(sent)).skipped);
  sent.loss = std::numeric_limits<double>::infinity(); // of a skipped step
  EXPECT_FALSE(std::isfinite(read_step(to_line(sent)).loss));
}

TEST(WorkerMessage, ASignalIsOneThatStopsARun) {
  const auto signal_of = [](const std::string& line) { return signal_in({2, kSignal, line}); };
  EXPECT_EQ(signal_of("15"), SIGTERM);
  EXPECT_EQ(signal_of("2"), SIGINT);
  EXPECT_EQ(signal_of("10"), SIGUSR1);
  for (const char* line : {"", "SIGTERM", "15 ", "15x", "-1", "0", "9", "99999999999"})
    EXPECT_THAT(error_of([&] { signal_of(line); }),
                AllOf(HasSubstr("message from rank 2"), HasSubstr("invalid number of a signal"), HasSubstr(line)));
}

TEST(WorkerMessage, AResultReadsBackToTheSameBits) {
  train::LoopResult sent;
  sent.steps = 12;
  sent.last_step = 32;
  sent.first_loss = 5.1 / 3;
  sent.last_loss = 2.2 / 3;
  sent.eval_loss = 1.0 / 3;
  sent.tokens_per_s = 1e4 / 7;
  sent.signal = 15;
  sent.out_of_time = true;
  sent.traffic = {{"tensor", "comm-x", 3, 1ULL << 60, 5}};
  sent.skipped = 4;
  sent.checkpoint = "/run/checkpoints/step-00000032";
  sent.owes_evaluation = true;
  sent.metrics = "/run/metrics.jsonl";
  sent.records = 12;
  sent.missing = {3, 2, 1, 4};
  const train::LoopResult read = read_result(to_line(sent));
  EXPECT_EQ(read.steps, sent.steps);
  EXPECT_EQ(read.last_step, 32);
  EXPECT_TRUE(read.out_of_time);
  EXPECT_EQ(read.checkpoint, sent.checkpoint);
  EXPECT_TRUE(read.owes_evaluation);
  EXPECT_EQ(read.first_loss, sent.first_loss);
  EXPECT_EQ(read.last_loss, sent.last_loss);
  EXPECT_EQ(read.eval_loss, sent.eval_loss);
  EXPECT_EQ(read.tokens_per_s, sent.tokens_per_s);
  EXPECT_EQ(read.signal, sent.signal);
  EXPECT_EQ(read.skipped, 4);
  EXPECT_EQ(read.metrics, "/run/metrics.jsonl");
  EXPECT_EQ(read.records, 12);
  EXPECT_EQ(to_text(read.missing, read.records), to_text(sent.missing, sent.records));
  ASSERT_EQ(read.traffic.size(), 1u);
  EXPECT_EQ(read.traffic[0].plugin, "comm-x");
  EXPECT_EQ(read.traffic[0].bytes_out, 1ULL << 60);
}

TEST(WorkerMessage, RefusesMalformedMessages) {
  for (const char* line : {"", "{", "[]", "{\"step\":1}", "{\"step\":\"x\",\"loss\":1}"}) {
    EXPECT_THAT(error_of([&] { read_step(line); }), HasSubstr("malformed: ")) << line;
    EXPECT_THAT(error_of([&] { read_result(line); }), HasSubstr("malformed: ")) << line;
  }
  JobResult result;
  EXPECT_THAT(error_of([&] {
                result.take({3, "weather", "fine"});
              }),
              HasSubstr("message from rank 3: unknown topic \"weather\""));
}

TEST(WorkerMessage, TheLastStepIsAlsoOfEarlierStartsAndDecreasesWithARewind) {
  JobResult result;
  const auto continues = [&](const std::string& line) { return result.take({0, kContinuing, line}); };
  EXPECT_FALSE(continues("20"));
  EXPECT_EQ(result.last_step(), 20);
  EXPECT_FALSE(result.has_step());
  JobResult evaluating;
  EXPECT_FALSE(evaluating.take({0, kEvaluating, "1"}));
  EXPECT_EQ(evaluating.last_step(), 1);
  EXPECT_TRUE(evaluating.has_step()) << "a signal stops after this step";
  report::StepRecord next = step();
  next.step = 21;
  result.take({0, kStep, to_line(next)});
  EXPECT_EQ(result.last_step(), 21);
  EXPECT_TRUE(result.has_step());
  EXPECT_FALSE(continues("15"));
  EXPECT_EQ(result.last_step(), 15);
  for (const char* line : {"", "-1", "1x", "99999999999999999999"})
    EXPECT_THAT(error_of([&] { continues(line); }), HasSubstr("message from rank 0: invalid step: ")) << line;
}

TEST(WorkerMessage, TheResultIsThatOfRank0WithTheTrafficOfAll) {
  JobResult result;
  EXPECT_EQ(result.take({0, kStep, to_line(step())})->step, 7);
  EXPECT_FALSE(result.together());
  for (const int rank : {2, 0, 1}) {
    train::LoopResult of;
    of.steps = 1;
    of.first_loss = 1.0 + rank;
    of.traffic = {{"data", "comm-x", 1, 10, 20}};
    if (rank > 0) of.traffic.push_back({"pipeline", "comm-y", 2, 1, 1});
    of.missing = {rank == 0 ? 1 : 0, 10, rank};
    EXPECT_FALSE(result.take({rank, kResult, to_line(of)}));
  }
  const auto all = result.together();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->first_loss, 1.0);
  EXPECT_EQ(to_text(all->missing, 1), "1 of 1 record, 30 lines of logs, 3 timelines");
  ASSERT_EQ(all->traffic.size(), 2u);
  for (const report::GroupTraffic& group : all->traffic) {
    EXPECT_EQ(group.ops, group.group == "data" ? 3u : 4u);
    EXPECT_EQ(group.bytes_out, group.group == "data" ? 30u : 2u);
    EXPECT_EQ(group.bytes_in, group.group == "data" ? 60u : 2u);
  }
}

} // namespace
} // namespace triax::launch
