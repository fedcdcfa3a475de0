// SPDX-License-Identifier: Apache-2.0
// Rows that no scheduler creates but that the verifier accepts: training with them completes, with the bits of the
// schedule from which they differ by one flip.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>

#include "equality/harness.hpp"
#include "schedule/row_flips.hpp"
#include "schedule/verify.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

/// With clipping and weight decay, so that their inputs must be equal too.
const Training kTwoSteps{.clip_grad = 0.1, .steps = 2};

std::vector<std::uint64_t> bits(const std::vector<double>& numbers) {
  std::vector<std::uint64_t> out;
  out.reserve(numbers.size());
  for (const double number : numbers) out.push_back(std::bit_cast<std::uint64_t>(number));
  return out;
}

void expect_same(const std::vector<KeptRank>& some, const std::vector<KeptRank>& others) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t rank = 0; rank < some.size(); ++rank) {
    SCOPED_TRACE(text("rank {}", rank));
    EXPECT_EQ(some[rank].losses.size(), static_cast<std::size_t>(kTwoSteps.steps));
    EXPECT_EQ(bits(some[rank].losses), bits(others[rank].losses)) << "losses";
    EXPECT_EQ(bits(some[rank].norms), bits(others[rank].norms)) << "grad_norms";
    ASSERT_EQ(some[rank].parameters.size(), others[rank].parameters.size());
    for (const auto& [name, parameter] : some[rank].parameters) {
      EXPECT_TRUE(parameter.gradient == others[rank].parameters.at(name).gradient) << "gradient of " << name;
      EXPECT_TRUE(parameter.weights == others[rank].parameters.at(name).weights) << "weights of " << name;
    }
  }
}

/// Some of the flips that the verifier accepts, selected with a fixed seed.
std::vector<Schedule> accepted_flips(const Schedule& schedule, const PipelineShape& shape, std::size_t most) {
  std::vector<test::RowFlip> flips = test::row_flips(schedule, shape);
  std::mt19937 random(1);
  std::ranges::shuffle(flips, random);
  std::vector<Schedule> out;
  for (const test::RowFlip& flip : flips) {
    if (out.size() == most) break;
    Schedule rows = flipped(schedule, flip);
    if (schedule::verify(rows, shape).empty()) out.push_back(std::move(rows));
  }
  return out;
}

TEST(FlippedRows, TrainWithTheBitsOfTheScheduleTheyComeFrom) {
  constexpr std::size_t kMaxOfASchedule = 3;
  int trained = 0;
  for (const PipelineShape& shape :
       {PipelineShape{2, 1, 2}, {2, 1, 3}, {3, 1, 2}, {3, 1, 3}, {2, 2, 2}, {2, 2, 3}, {3, 2, 2}, {3, 2, 3}})
    for (const auto& [name, schedule] : test::valid_schedules(shape)) {
      const Case run{
          .pipeline = shape.pipeline, .chunks = shape.chunks, .scheduler = name, .microbatches = shape.microbatches};
      const std::vector<KeptRank> expected = train(run, kTwoSteps);
      for (const Schedule& rows : accepted_flips(schedule, shape, kMaxOfASchedule)) {
        std::string where = to_text(run);
        for (const std::string& row : test::row_texts(rows)) where += "\n" + row;
        SCOPED_TRACE(where);
        ASSERT_NE(test::row_texts(rows), test::row_texts(schedule));
        ASSERT_NO_FATAL_FAILURE(expect_same(train(run, kTwoSteps, &rows), expected));
        ++trained;
      }
    }
  EXPECT_GE(trained, 40);
  RecordProperty("trained", trained);
}

} // namespace
} // namespace triax::equality
