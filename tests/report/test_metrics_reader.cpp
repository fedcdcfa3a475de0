// SPDX-License-Identifier: Apache-2.0
// Reading metrics files: every field comes back with all bits, and damage is counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "report/metrics_file.hpp"
#include "report/metrics_reader.hpp"
#include "support/temp_folder.hpp"

namespace triax::report {
namespace {

using ::testing::ElementsAre;

StepRecord full_record(std::int64_t step) {
  StepRecord out;
  out.step = step;
  out.loss = 5.1 / 3;
  out.grad_norm = 0.1;
  out.lr = 1e-3;
  out.tokens_per_s = 4096.5;
  out.step_ms = 62.5;
  out.model_tflops = 0.125;
  out.bubble_rate = 0.25;
  out.comm = {{"tensor", "comm-local", 10, 2000, 3000}, {"data", "comm-ucx", 1, 0, 18446744073709551615ull}};
  out.eval_loss = 5.5;
  out.eval_perplexity = 244.5;
  out.loss_scale = 65536;
  return out;
}

std::filesystem::path write_file(const test::TempFolder& folder, const std::string& content) {
  const std::filesystem::path out = folder.path() / "metrics.jsonl";
  std::ofstream(out, std::ios::binary) << content;
  return out;
}

std::vector<std::int64_t> steps_of(const std::vector<StepRecord>& records) {
  std::vector<std::int64_t> out;
  for (const StepRecord& record : records) out.push_back(record.step);
  return out;
}

TEST(MetricsReader, ReadsWhatTheFileWrites) {
  const std::string line = to_json(full_record(3));
  const std::optional<StepRecord> read = read_record(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), line);
  EXPECT_THAT(read->comm, ElementsAre(testing::Field(&GroupTraffic::group, "tensor"),
                                      testing::Field(&GroupTraffic::bytes_in, 18446744073709551615ull)));
}

TEST(MetricsReader, OfASkippedStepReadsNull) {
  StepRecord skipped = full_record(3);
  skipped.skipped = true;
  skipped.loss = std::nan("");
  const std::optional<StepRecord> read = read_record(to_json(skipped));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->skipped);
  EXPECT_TRUE(std::isnan(read->loss));
  EXPECT_TRUE(std::isnan(read->grad_norm));
}

TEST(MetricsReader, RefusesWhatIsNotARecord) {
  for (const char* line : {"", "{", "[]", "{}", "{\"step\":\"1\"}", "{\"step\":1.5}", "\xff\xfe", "null"})
    EXPECT_FALSE(read_record(line)) << line;
  // Values of another type than a record's are missing.
  const auto read =
      read_record(R"({"step":1,"loss":"a","comm":{"data":3,"tensor":{"plugin":4,"bytes_out":-5}},"skipped":2})");
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(read->loss));
  EXPECT_EQ(read->comm.size(), 1);
  EXPECT_EQ(read->comm[0].bytes_out, 0);
}

TEST(MetricsReader, CountsDamageAndLeavesAnUnfinishedLine) {
  const test::TempFolder folder;
  const auto file =
      write_file(folder, to_json(full_record(1)) + "\nnoise\n\n" + to_json(full_record(2)) + "\n{\"step\":3,");
  const MetricsRecords read = read_metrics(file);
  EXPECT_THAT(steps_of(read.records), ElementsAre(1, 2));
  EXPECT_EQ(read.damaged_lines, 2);
  EXPECT_EQ(read.first_damaged, 2);
  EXPECT_TRUE(read.ends_within_line);
}

TEST(MetricsReader, ContinuesWhereItEnded) {
  const test::TempFolder folder;
  const auto file = write_file(folder, to_json(full_record(1)) + "\n{\"step\"");
  const MetricsRecords first = read_metrics(file);
  EXPECT_THAT(steps_of(first.records), ElementsAre(1));
  std::ofstream(file, std::ios::app) << ":2}\n";
  const MetricsRecords second = read_metrics(file, first.end);
  EXPECT_THAT(steps_of(second.records), ElementsAre(2));
  EXPECT_FALSE(second.ends_within_line);
  EXPECT_TRUE(read_metrics(file, second.end).records.empty());
}

TEST(MetricsReader, OfStepsThatWereTrainedAgainTheLastCounts) {
  std::vector<StepRecord> records = {full_record(1), full_record(2), full_record(3), full_record(2)};
  records[3].loss = 7;
  const std::vector<StepRecord> out = last_of_each_step(records);
  EXPECT_THAT(steps_of(out), ElementsAre(1, 2, 3));
  EXPECT_EQ(out[1].loss, 7);
}

} // namespace
} // namespace triax::report
