// SPDX-License-Identifier: Apache-2.0
// The sentences of a comparison's result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "compare/compare_report.hpp"

namespace triax::app {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// What is said of 20 rounds whose ratios are `ratio` on average, and scatter.
std::string said(double ratio, double scatter) {
  compare::Compared compared;
  for (int i = 0; i < 20; ++i) compared.rounds.push_back({1, ratio * (1 + (i % 5 - 2) * scatter)});
  compared.step_time = compare::paired_ratio(compared.rounds);
  return verdict(compared);
}

TEST(Verdict, SaysWhichSideIsFaster) {
  EXPECT_THAT(said(0.9, 0.001),
              StartsWith("B is faster: its step takes 0.900 times as long as A's (99 % interval 0.8"));
  EXPECT_THAT(said(1.1, 0.001),
              StartsWith("B is slower: its step takes 1.100 times as long as A's (99 % interval 1.0"));
  EXPECT_THAT(said(1.1, 0.001), Not(HasSubstr("rounds would show")));
}

TEST(Verdict, SaysWhatWouldBeNeededIfNoneIsShown) {
  EXPECT_THAT(said(1, 0.01), StartsWith("No difference shown: a step of B takes 1.000 times as long as one of A"));
  EXPECT_THAT(said(1, 0.01), HasSubstr(", 20 rounds). About "));
  EXPECT_THAT(said(1, 0.4), HasSubstr("This machine is too noisy to show a difference of 1 %."));
}

TEST(Verdict, OfNumbers) {
  compare::Agreement of;
  of.steps = 7;
  EXPECT_EQ(agreement_text(of), "bit-equal in 7 steps");
  of.first_difference = 2;
  of.max_relative = 0.5;
  of.max_step = 3;
  of.max_ulp = 9;
  EXPECT_EQ(agreement_text(of), "differ from step 2 on; largest difference: relative 0.5 in step 3, 9 ULP");
  of.max_relative = std::numeric_limits<double>::infinity();
  EXPECT_EQ(agreement_text(of), "differ from step 2 on; in step 3 one of them is not finite");
}

} // namespace
} // namespace triax::app
