// SPDX-License-Identifier: Apache-2.0
// Schedules as CSV files: written files can be read again, invalid ones are refused with a message, and no input
// crashes the reader or the verifier. tests/cli shows files that the verifier refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "csv/program_csv.hpp"
#include "csv/read_csv.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "schedule/verify.hpp"
#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using test::reasons;
using test::row_texts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Assumptions kMin = everywhere(kMinGuarantee);

struct Made {
  const char* scheduler;
  PipelineShape shape;
};

void PrintTo(const Made& made, std::ostream* out) {
  *out << made.scheduler << " " << made.shape.pipeline;
}

class WrittenAndRead : public ::testing::TestWithParam<Made> {
 protected:
  Schedule schedule() const { return test::LoadedScheduler(GetParam().scheduler)->rows(GetParam().shape); }
};

TEST_P(WrittenAndRead, ComputeActions) {
  const Schedule written = schedule();
  const CsvFile read = read_csv(to_csv(written), "rows.csv");
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_FALSE(read.lowered);
  EXPECT_EQ(read.shape.pipeline, GetParam().shape.pipeline);
  EXPECT_EQ(read.shape.chunks, GetParam().shape.chunks);
  EXPECT_EQ(read.shape.microbatches, GetParam().shape.microbatches);
  EXPECT_EQ(read.schedule.stage_rank(), written.stage_rank());
  for (int rank = 0; rank < written.ranks(); ++rank) EXPECT_EQ(read.schedule.row(rank), written.row(rank));
}

/// Slots and waits follow from the order, so a file does not contain them.
TEST_P(WrittenAndRead, ALoweredProgram) {
  for (const Sharding sharding : {Sharding::none, Sharding::states, Sharding::parameters}) {
    const bool recomputes = sharding != Sharding::states;
    const std::vector<Program> written =
        lower(schedule(), GetParam().shape, Boundaries::whole, sharding, kDefaultPrefetch,
              std::vector<bool>(static_cast<std::size_t>(GetParam().shape.stages()), recomputes));
    EXPECT_EQ(written[0].has(Kind::recompute), recomputes);
    const std::string csv = to_csv(written);
    const CsvFile file = read_csv(csv, "rows.csv");
    ASSERT_THAT(file.problems, IsEmpty());
    EXPECT_TRUE(file.lowered);
    EXPECT_EQ(row_texts(file.schedule), row_texts(schedule()));
    const std::vector<Program> read = programs_of(file);
    EXPECT_EQ(to_csv(read), csv);
    EXPECT_THAT(reasons(verify(read, {GetParam().shape}, kMin)), IsEmpty());
    for (std::size_t rank = 0; rank < written.size(); ++rank) {
      const auto one = written[rank].actions(), other = read[rank].actions();
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t at = 0; at < one.size(); ++at) {
        SCOPED_TRACE(text("rank {}, {}", rank, written[rank].label(static_cast<ActionId>(at))));
        EXPECT_EQ(one[at].own, other[at].own);
        EXPECT_EQ(one[at].handed, other[at].handed);
        EXPECT_EQ(one[at].peer, other[at].peer);
        EXPECT_EQ(one[at].weights, other[at].weights);
        EXPECT_EQ(one[at].waits, other[at].waits);
      }
      for (const int stage : written[rank].stages())
        for (int pool = 0; pool < kPools; ++pool)
          EXPECT_EQ(written[rank].slots(stage, static_cast<Pool>(pool)),
                    read[rank].slots(stage, static_cast<Pool>(pool)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedulers, WrittenAndRead,
                         ::testing::Values(Made{"sched-gpipe", {3, 1, 4}}, Made{"sched-1f1b", {4, 1, 8}},
                                           Made{"sched-1f1b", {1, 1, 1}}, Made{"sched-interleaved", {4, 2, 8}},
                                           Made{"sched-interleaved", {3, 3, 9}}, Made{"sched-breadth-first", {2, 3, 5}},
                                           Made{"sched-zb-h1", {4, 1, 8}}, Made{"sched-zb-h2", {4, 1, 9}},
                                           Made{"sched-zb-v", {4, 2, 8}}, Made{"sched-zb-v", {1, 2, 2}}));

TEST(ReadCsv, ReadsFilesOfSpreadsheetsAndPyTorch) {
  const char* const files[] = {
      "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
      "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n",
      "0F0,0F1,,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1\r\n", // idle slots
      "0F0,0F1,0B0,0B1,\n1F0,1B0,1F1,1B1,,,\n\n\r\n,,,\n",
      "\xef\xbb\xbf\"0F0\",\"0F1\",\" 0B0\",0B1\n  1F0\t, 1B0 ,1F1,\"\",1B1",
  };
  for (const char* csv : files) {
    SCOPED_TRACE(csv);
    const CsvFile file = read_csv(csv, "rows.csv");
    EXPECT_THAT(file.problems, IsEmpty());
    EXPECT_THAT(row_texts(file.schedule), ElementsAre("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"));
  }
}

TEST(ReadCsv, PutsAStageOnTheRankOfItsLine) {
  const CsvFile file = read_csv("0F0,3F0,3B0,0B0\n2F0,1F0,2B0,1B0\n", "rows.csv");
  EXPECT_EQ(file.schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 1, 0}}));
  EXPECT_EQ(file.shape.chunks, 2);
}

TEST(ReadCsv, KeepsThePlaceOfEveryAction) {
  const CsvFile file = read_csv(",0F0,,0B0\n", "rows.csv");
  ASSERT_THAT(file.actions, SizeIs(1));
  EXPECT_EQ(file.actions[0][1].line, 1);
  EXPECT_EQ(file.actions[0][1].cell, 4);
}

std::string ending(int stage) {
  return text("{}REDUCE_GRAD,REDUCE_TIED,NORM,{}OPT_STEP\n", stage, stage);
}

/// Violations of a lowered file.
std::vector<std::string> violations(const std::string& csv, const PipelineShape& shape,
                                    const Assumptions& assumptions) {
  const CsvFile file = read_csv(csv, "rows.csv");
  EXPECT_THAT(file.problems, IsEmpty());
  return reasons(verify(programs_of(file), {shape}, assumptions));
}

/// The sends of the two ranks cross. Posted one by one, each waits for the other to begin; in a set with the receive
/// behind it, rank 1's does not.
TEST(ReadCsv, ARunOfAdjacentTransfersIsOneSet) {
  const std::string first =
      "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0RECV_B0,0B0,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2," + ending(0);
  const std::string rest = "1F1,1I1,1SEND_B1,1RECV_F2,1W1,1F2,1B2,1SEND_B2," + ending(1);
  const std::string adjacent = first + "1RECV_F0,1F0,1I0,1SEND_B0,1RECV_F1,1W0," + rest;
  const std::string apart = first + "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1," + rest;
  Assumptions assumptions = kMin;
  for (const auto order : {CommTraits::Order::serial, CommTraits::Order::channel, CommTraits::Order::tagged}) {
    assumptions = everywhere({order, CommTraits::Send::rendezvous, CommTraits::Post::blocking});
    EXPECT_THAT(violations(adjacent, {2, 1, 3}, assumptions), IsEmpty());
    EXPECT_THAT(violations(apart, {2, 1, 3}, assumptions), ElementsAre(HasSubstr("deadlock (")));
  }
  assumptions.edges.send = CommTraits::Send::buffered;
  EXPECT_THAT(violations(apart, {2, 1, 3}, assumptions), IsEmpty());
}

/// In a serial queue, work behind a set waits for the whole set, including transfers with other ranks.
TEST(ReadCsv, ASetTakesOnePlaceInTheQueue) {
  const std::string csv = "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1," + ending(0) +
                          "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1," + ending(1);
  Assumptions assumptions =
      everywhere({CommTraits::Order::channel, CommTraits::Send::buffered, CommTraits::Post::nonblocking});
  EXPECT_THAT(violations(csv, {2, 1, 2}, assumptions), IsEmpty());
  assumptions.edges.order = CommTraits::Order::serial;
  EXPECT_THAT(violations(csv, {2, 1, 2}, assumptions), ElementsAre(HasSubstr("deadlock (")));
}

TEST(ReadCsv, RefusesSlicesAndSecondPipelines) {
  EXPECT_THAT(read_csv("0F0.2,0B0\n", "rows.csv").problems,
              ElementsAre("rows.csv:1:1: \"0F0.2\" has a slice or a second pipeline; this version supports neither"));
  EXPECT_THAT(read_csv("0F0,0B0'\n", "rows.csv").problems, SizeIs(1));
}

TEST(ReadCsv, OfManyProblemsTheFirstAreKept) {
  std::string csv;
  for (int cell = 0; cell < 100; ++cell) csv += "x,";
  const CsvFile file = read_csv(csv, "rows.csv");
  EXPECT_EQ(file.problem_count, 100u);
  EXPECT_THAT(file.problems, SizeIs(20));
}

TEST(ReadCsv, RefusesTooManyLinesAndCells) {
  EXPECT_THAT(read_csv(std::string(1 << 17, '\n'), "rows.csv").problems, SizeIs(1));
  std::string csv;
  for (int cell = 0; cell < 3 << 20; ++cell) csv += "0F0,";
  EXPECT_THAT(read_csv(csv, "rows.csv").problems, SizeIs(1));
}

/// Changes a few bytes of a valid file: the result is accepted, or refused with a message.
TEST(ReadCsv, NothingThatAFileHoldsBringsItDown) {
  std::mt19937 random(7);
  const auto below = [&random](std::size_t end) { return random() % end; };
  const std::string letters = "0123456789FBIWSENDRCV_,,\n\r \"'.x\t\xff";
  const Schedule rows = test::LoadedScheduler("sched-zb-v")->rows({2, 2, 3});
  const std::string files[] = {to_csv(rows), to_csv(lower(rows, {2, 2, 3}))};
  int verified = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string csv = files[round % 2];
    for (std::size_t change = below(4); change < 4; ++change) {
      const std::size_t at = below(csv.size()), other = below(csv.size());
      switch (below(4)) {
        case 0:
          csv[at] = letters[below(letters.size())];
          break;
        case 1:
          csv.erase(at, 1 + below(8));
          break;
        case 2:
          csv.insert(at, csv.substr(other, below(8)));
          break;
        default:
          std::swap(csv[at], csv[other]);
      }
    }
    const CsvFile file = read_csv(csv, "rows.csv");
    if (!file.problems.empty()) {
      ++refused;
      continue;
    }
    const std::vector<schedule::Violation> violations =
        file.lowered ? verify(programs_of(file), {file.shape}, kMin) : verify(file.schedule, file.shape);
    violations.empty() ? ++verified : ++refused;
  }
  EXPECT_GT(refused, 3000);
  EXPECT_GT(verified, 0); // blanks and idle cells have no effect
}

} // namespace
