// SPDX-License-Identifier: Apache-2.0
// For rows that differ by one flip from a scheduler's, the verifier agrees with a search over every order of actions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

#include "schedule/interleavings.hpp"
#include "schedule/row_flips.hpp"
#include "schedule/verify.hpp"
#include "triax/text.hpp"

namespace {
using namespace triax;
using test::RowFlip;

/// The order of sums affects bits and causes no deadlock, so the search does not check it.
bool only_order_of_sums(const std::vector<schedule::Violation>& refusals) {
  return !refusals.empty() && std::ranges::all_of(refusals, [](const schedule::Violation& refusal) {
    return refusal.rule == schedule::Violation::Rule::ascending;
  });
}

struct RowFlipCounts {
  int accepted = 0, refused = 0, order_of_sums = 0;
  std::size_t states = 0;
};

std::string shown(const Schedule& schedule, const std::vector<schedule::Violation>& refusals) {
  std::string out;
  for (const std::string& row : test::row_texts(schedule)) out += row + "\n";
  for (const schedule::Violation& refusal : refusals) out += refusal.reason() + "\n";
  return out;
}

/// False if verifier and search disagree.
bool agree(const Schedule& schedule, const PipelineShape& shape, RowFlipCounts& counts) {
  const std::vector<schedule::Violation> refusals = schedule::verify(schedule, shape);
  const test::SearchResult found = test::search(test::RowsSpace(schedule, shape));
  counts.states += found.states;
  const bool ascend = test::gradients_ascend(schedule);
  const bool right =
      only_order_of_sums(refusals) ? found.safe() && !ascend : refusals.empty() == (found.safe() && ascend);
  EXPECT_TRUE(right) << "search: " << (found.safe() ? "safe" : found.fault) << "\n" << shown(schedule, refusals);
  ++(refusals.empty() ? counts.accepted : only_order_of_sums(refusals) ? counts.order_of_sums : counts.refused);
  return right;
}

/// Applies flip after flip while the rows still run: schedules that no scheduler creates.
void walk(const test::NamedSchedule& from, const PipelineShape& shape, std::mt19937& random, RowFlipCounts& counts) {
  constexpr int kSteps = 200, kFar = 25;
  Schedule reached = from.schedule;
  for (int step = 0; step < kSteps; ++step) {
    if (step % kFar == 0) reached = from.schedule;
    const std::vector<RowFlip> flips = test::row_flips(reached, shape);
    std::vector<RowFlip> orders; // most other flips are refused at once
    std::ranges::copy_if(flips, std::back_inserter(orders), [](const RowFlip& flip) {
      return flip.how == RowFlip::How::split || flip.how == RowFlip::How::swap ||
             (flip.how == RowFlip::How::move && flip.rank == flip.other_rank);
    });
    const std::vector<RowFlip>& of = random() % 10 == 0 ? flips : orders;
    const Schedule next = flipped(reached, of[random() % of.size()]);
    ASSERT_TRUE(agree(next, shape, counts));
    if (test::search(test::RowsSpace(next, shape)).safe()) reached = next;
  }
}

constexpr PipelineShape kShapes[] = {{2, 1, 2}, {2, 1, 3}, {3, 1, 2}, {3, 1, 3},
                                     {2, 2, 2}, {2, 2, 3}, {3, 2, 2}, {3, 2, 3}};

void record(const std::string& of, const RowFlipCounts& counts) {
  ::testing::Test::RecordProperty(of, text("{} accepted, {} refused, {} for the order of sums alone; {} states",
                                           counts.accepted, counts.refused, counts.order_of_sums, counts.states));
}

TEST(RowFlips, AreJudgedAsByASearchOfAllOrders) {
  std::map<RowFlip::How, RowFlipCounts> of_kind;
  for (const PipelineShape& shape : kShapes)
    for (const auto& [name, schedule] : test::valid_schedules(shape)) {
      SCOPED_TRACE(text("p {}, v {}, m {}, {}", shape.pipeline, shape.chunks, shape.microbatches, name));
      RowFlipCounts valid;
      ASSERT_TRUE(agree(schedule, shape, valid));
      ASSERT_EQ(valid.accepted, 1);
      for (const RowFlip& flip : test::row_flips(schedule, shape))
        ASSERT_TRUE(agree(flipped(schedule, flip), shape, of_kind[flip.how]));
    }
  for (const auto& [how, counts] : of_kind) {
    record(name_of(how), counts);
    const bool keeps_cells = how == RowFlip::How::swap || how == RowFlip::How::move || how == RowFlip::How::split;
    EXPECT_EQ(counts.accepted >= 100, keeps_cells) << name_of(how);
    EXPECT_EQ(counts.order_of_sums >= 100, keeps_cells) << name_of(how);
    EXPECT_EQ(counts.refused >= 100, how != RowFlip::How::split) << name_of(how);
  }
}

TEST(RowFlips, OneAfterAnother) {
  std::mt19937 random(1);
  RowFlipCounts counts;
  for (const PipelineShape& shape : kShapes)
    for (const test::NamedSchedule& valid : test::valid_schedules(shape)) {
      SCOPED_TRACE(text("p {}, v {}, m {}, {}", shape.pipeline, shape.chunks, shape.microbatches, valid.name));
      ASSERT_NO_FATAL_FAILURE(walk(valid, shape, random, counts));
    }
  record("verdicts", counts);
  EXPECT_GE(counts.accepted, 150);
  EXPECT_GE(counts.refused, 1500);
  EXPECT_GE(counts.order_of_sums, 300);
}

} // namespace
