// SPDX-License-Identifier: Apache-2.0
// Schedules change no bit: whole and split backwards, any order, one or several chunks per rank.
#include <gtest/gtest.h>

#include "schedule/rows.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using test::schedule_of;
using test::TinyRun;
using test::Trace;

Trace with_rows(TinyRun& run, int chunks, const std::string& row) {
  run.keys["parallel.chunks"] = std::to_string(chunks);
  const PipelineShape shape{1, chunks, 4};
  const Schedule schedule = schedule_of(shape, std::vector<int>(static_cast<std::size_t>(chunks), 0), {row});
  train::RankOptions options;
  options.schedule = &schedule;
  return test::train(run, 3, options);
}

const std::string kGpipe = "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3";

TEST(Schedules, OneForwardOneBackwardIsGpipe) {
  TinyRun run;
  EXPECT_EQ(with_rows(run, 1, "0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3"), with_rows(run, 1, kGpipe));
}

TEST(Schedules, InputThenWeightIsTheWholeBackward) {
  TinyRun run;
  const Trace whole = with_rows(run, 1, kGpipe);
  EXPECT_EQ(with_rows(run, 1, "0F0 0F1 0F2 0F3 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3"), whole);
  EXPECT_EQ(with_rows(run, 1, "0F0 0F1 0F2 0F3 0I0 0I1 0I2 0I3 0W0 0W1 0W2 0W3"), whole);
  EXPECT_EQ(with_rows(run, 1, "0F0 0I0 0F1 0I1 0W0 0F2 0F3 0W1 0B2 0I3 0W3"), whole);
}

TEST(Schedules, ChunksOfOneRankHandOverWithoutChangingABit) {
  TinyRun run;
  run.keys["model.layers"] = "3";
  const Trace one = with_rows(run, 1, kGpipe);
  EXPECT_EQ(with_rows(run, 2, "0F0 0F1 0F2 0F3 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3 0B0 0B1 0B2 0B3"), one);
  EXPECT_EQ(with_rows(run, 2, "0F0 1F0 1I0 0F1 1F1 0F2 0I0 1W0 1B1 0W0 0F3 1F2 1F3 0B1 1B2 1B3 0B2 0B3"), one);
}

} // namespace
} // namespace triax
