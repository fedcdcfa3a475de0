// SPDX-License-Identifier: Apache-2.0
// Comparison of a measured step with the simulated one: the differences are attributed to causes, and add up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/lower.hpp"
#include "schedule/measured.hpp"
#include "schedule/rows.hpp"
#include "support/error_of.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr double kExact = 1e-9;

/// Two ranks, two microbatches; F takes 2 ms and B 4 ms on both. Rank 1 begins when rank 0's first F has ended.
class TwoRanks : public ::testing::Test {
 protected:
  static MeasuredPass pass(Kind kind, int stage, int microbatch, double start, double end, double waited = 0) {
    return {{kind, stage, microbatch, start, end}, waited};
  }
  Comparison compared() const { return compare(programs_, rows_, shape_); }
  static double sum(const StepBreakdown& of) {
    return of.even + of.slow_stages + of.slow_passes + of.late + of.overhead;
  }

  const PipelineShape shape_{2, 1, 2};
  const std::vector<Program> programs_ =
      lower(test::schedule_of(shape_, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), shape_);
  // As simulated: rank 0 waits from 4 to 8 for the first gradient, and from 12 to 14 for the second.
  MeasuredRows rows_{{pass(Kind::forward, 0, 0, 100, 102), pass(Kind::forward, 0, 1, 102, 104),
                      pass(Kind::backward, 0, 0, 108, 112, 4), pass(Kind::backward, 0, 1, 114, 118, 2)},
                     {pass(Kind::forward, 1, 0, 102, 104, 2), pass(Kind::backward, 1, 0, 104, 108),
                      pass(Kind::forward, 1, 1, 108, 110), pass(Kind::backward, 1, 1, 110, 114)}};
};

TEST_F(TwoRanks, LoseNoTimeIfTheyRunAsSimulated) {
  const Comparison all = compared();
  ASSERT_EQ(all.times.size(), 2u);
  EXPECT_EQ(all.times[0].forward_ms, 2);
  EXPECT_EQ(all.times[0].input_ms + all.times[0].weight_ms, 4);
  for (const StepBreakdown& rank : all.ranks) {
    EXPECT_EQ(rank.measured, rank.even);
    for (const double part : {rank.slow_stages, rank.slow_passes, rank.late, rank.overhead})
      EXPECT_THAT(part, DoubleNear(0, kExact));
  }
  EXPECT_EQ(time_span(all.measured).bubble_rate(), time_span(all.simulated).bubble_rate());
  EXPECT_EQ(time_span(all.measured).active, 18);
  EXPECT_EQ(time_span(all.measured).first, 0);
}

TEST_F(TwoRanks, OfTwoMachinesAreDrawnOnOneClock) {
  const Comparison one = compared();
  EXPECT_FALSE(one.clocks_within);
  for (MeasuredPass& of : rows_[1]) of.span.start += 86400000, of.span.end += 86400000;
  const Comparison two = compare(programs_, rows_, shape_, {0, 1});
  EXPECT_THAT(two.clocks_within, ::testing::Optional(DoubleNear(0, 1e-6))); // links take no time here
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t at = 0; at < rows_[rank].size(); ++at)
      EXPECT_NEAR(two.measured.rows[rank][at].start, one.measured.rows[rank][at].start, 1e-6);
  EXPECT_THAT(two.ranks[1].late, DoubleNear(one.ranks[1].late, 1e-6));
}

/// R has a separate time, and does not count as a wait.
TEST_F(TwoRanks, MayRecomputeBeforeTheirGradientsArrive) {
  const std::vector<Program> programs =
      lower(test::schedule_of(shape_, {0, 1}, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), shape_, Boundaries::whole,
            Sharding::none, kDefaultPrefetch, {true, false});
  rows_[0].insert(rows_[0].begin() + 2, pass(Kind::recompute, 0, 0, 104, 105));
  rows_[0].insert(rows_[0].begin() + 4, pass(Kind::recompute, 0, 1, 112, 113));
  rows_[0][3].waited_ms = 3;
  rows_[0][5].waited_ms = 1;
  const Comparison all = compare(programs, rows_, shape_);
  EXPECT_EQ(all.times[0].recompute_ms, 1);
  EXPECT_EQ(all.times[0].input_ms + all.times[0].weight_ms, 4);
  EXPECT_EQ(all.times[1].recompute_ms, 0);
  EXPECT_THAT(all.ranks[0].late, DoubleNear(0, kExact));
  EXPECT_THAT(all.ranks[0].overhead, DoubleNear(0, kExact));
  EXPECT_THAT(sum(all.ranks[0]), DoubleNear(all.ranks[0].measured, kExact));
  EXPECT_THROW(compare(programs_, rows_, shape_), Error); // another run: its programs have no R
}

TEST_F(TwoRanks, ALateTransferIsReported) {
  for (std::size_t at : {2u, 3u}) {
    rows_[0][at].span.start += 3;
    rows_[0][at].span.end += 3;
  }
  rows_[0][2].waited_ms += 3;
  const StepBreakdown rank = compared().ranks[0];
  EXPECT_THAT(rank.late, DoubleNear(3, kExact));
  EXPECT_THAT(rank.overhead, DoubleNear(0, kExact));
  EXPECT_THAT(sum(rank), DoubleNear(rank.measured, kExact));
}

TEST_F(TwoRanks, CountTimeOutsidePassesAndWaitsAsOverhead) {
  rows_[0][3].span.start += 1;
  rows_[0][3].span.end += 1;
  const StepBreakdown rank = compared().ranks[0];
  EXPECT_THAT(rank.overhead, DoubleNear(1, kExact));
  EXPECT_THAT(rank.late, DoubleNear(0, kExact));
  EXPECT_THAT(sum(rank), DoubleNear(rank.measured, kExact));
}

TEST_F(TwoRanks, APassThatIsSlowerThanIsUsualIsReported) {
  const PipelineShape shape{1, 1, 3};
  const std::vector<Program> alone = lower(test::schedule_of(shape, {0}, {"0F0 0B0 0F1 0B1 0F2 0B2"}), shape);
  MeasuredRows rows(1);
  double now = 0;
  for (int i = 0; i < 3; ++i) {
    rows[0].push_back(pass(Kind::forward, 0, i, now, now + 2));
    const double length = i == 1 ? 9 : 4; // one of three: does not change the median
    rows[0].push_back(pass(Kind::backward, 0, i, now + 2, now + 2 + length));
    now += 2 + length;
  }
  const StepBreakdown rank = compare(alone, rows, shape).ranks.at(0);
  EXPECT_THAT(rank.slow_passes, DoubleNear(5, kExact));
  EXPECT_THAT(rank.slow_stages, DoubleNear(0, kExact));
  EXPECT_THAT(sum(rank), DoubleNear(23, kExact));
}

TEST_F(TwoRanks, ASlowStageIsReported) {
  // All passes of stage 1 take twice as long, and stage 0 waits for them.
  rows_ = {{pass(Kind::forward, 0, 0, 0, 2), pass(Kind::forward, 0, 1, 2, 4), pass(Kind::backward, 0, 0, 14, 18, 10),
            pass(Kind::backward, 0, 1, 26, 30, 8)},
           {pass(Kind::forward, 1, 0, 2, 6, 2), pass(Kind::backward, 1, 0, 6, 14), pass(Kind::forward, 1, 1, 14, 18),
            pass(Kind::backward, 1, 1, 18, 26)}};
  const Comparison all = compared();
  EXPECT_EQ(all.times[1].forward_ms, 4);
  EXPECT_THAT(all.ranks[0].even, DoubleNear(27, kExact)); // 18 x 1.5
  EXPECT_THAT(all.ranks[0].slow_stages, DoubleNear(3, kExact));
  for (const StepBreakdown& rank : all.ranks) {
    for (const double part : {rank.slow_passes, rank.late, rank.overhead}) EXPECT_THAT(part, DoubleNear(0, kExact));
    EXPECT_THAT(sum(rank), DoubleNear(rank.measured, kExact));
  }
}

TEST_F(TwoRanks, PassesOfAnotherRunAreRefused) {
  rows_[1].pop_back();
  EXPECT_THAT(triax::test::error_of([&] { compared(); }),
              HasSubstr("pipeline rank 1 ran 3 passes, but its program has 4"));
  rows_[1].push_back(pass(Kind::backward, 1, 0, 110, 114));
  EXPECT_THAT(triax::test::error_of([&] { compared(); }),
              HasSubstr("pipeline rank 1, pass 3: 1B0 ran, but its program has 1B1"));
  rows_[1].back().span.stage = 2;
  EXPECT_THAT(triax::test::error_of([&] { compared(); }), HasSubstr("2B0 ran, which is not a pass of 2 stages"));
  rows_.pop_back();
  EXPECT_THAT(triax::test::error_of([&] { compared(); }), HasSubstr("passes of 1 ranks, programs of 2"));
}

} // namespace
