// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: keys and their order, floats with all bits, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <limits>
#include <random>

#include "report/json.hpp"
#include "report/metrics_file.hpp"
#include "report/missing.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::report {
namespace {

using ::testing::HasSubstr;
using namespace triax::test;

StepRecord record() {
  StepRecord out;
  out.step = 3;
  out.loss = 5.25;
  out.grad_norm = 0.1;
  out.lr = 1e-3;
  out.tokens_per_s = 4096;
  out.step_ms = 62.5;
  out.model_tflops = 0.125;
  out.bubble_rate = 0;
  return out;
}

TEST(Metrics, HasTheKeysOfTheFormatInTheirOrder) {
  StepRecord all = record();
  all.comm = {{"tensor", "comm-local", 10, 2000, 3000}, {"data", "comm-ucx", 1, 0, 18446744073709551615ull}};
  all.eval_loss = 5.5;
  all.eval_perplexity = 244.5;
  EXPECT_EQ(to_json(all), R"({"step":3,"loss":5.25,"grad_norm":0.1,"lr":0.001,"tokens_per_s":4096.0,"step_ms":62.5,)"
                          R"("model_tflops":0.125,"bubble_rate":0.0,)"
                          R"("comm":{"tensor":{"plugin":"comm-local","ops":10,"bytes_out":2000,"bytes_in":3000},)"
                          R"("data":{"plugin":"comm-ucx","ops":1,"bytes_out":0,"bytes_in":18446744073709551615}},)"
                          R"("eval_loss":5.5,"eval_perplexity":244.5})");
}

TEST(Metrics, InFp16ReportTheLossScaleAndWhetherTheStepWasSkipped) {
  StepRecord one = record();
  one.loss_scale = 65536;
  EXPECT_EQ(to_json(one), R"({"step":3,"loss":5.25,"grad_norm":0.1,"lr":0.001,"tokens_per_s":4096.0,"step_ms":62.5,)"
                          R"("model_tflops":0.125,"bubble_rate":0.0,"loss_scale":65536.0,"skipped":false,"comm":{}})");
  one.skipped = true;
  one.grad_norm = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(to_json(one), R"({"step":3,"loss":5.25,"grad_norm":null,"lr":0.001,"tokens_per_s":4096.0,"step_ms":62.5,)"
                          R"("model_tflops":0.125,"bubble_rate":0.0,"loss_scale":65536.0,"skipped":true,"comm":{}})");
}

TEST(Metrics, ASkippedStepMayHaveNoLoss) {
  StepRecord one = record();
  one.skipped = true;
  one.loss = one.grad_norm = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_json(one), R"({"step":3,"loss":null,"grad_norm":null,"lr":0.001,"tokens_per_s":4096.0,"step_ms":62.5,)"
                          R"("model_tflops":0.125,"bubble_rate":0.0,"skipped":true,"comm":{}})");
}

TEST(Metrics, LeavesOutAnEvaluationThatWasNot) {
  EXPECT_EQ(to_json(record()),
            R"({"step":3,"loss":5.25,"grad_norm":0.1,"lr":0.001,"tokens_per_s":4096.0,"step_ms":62.5,)"
            R"("model_tflops":0.125,"bubble_rate":0.0,"comm":{}})");
}

double read_back(const std::string& json, const std::string& key) {
  const std::size_t begin = json.find("\"" + key + "\":") + key.size() + 3;
  double value = 0;
  std::from_chars(json.data() + begin, json.data() + json.size(), value);
  return value;
}

TEST(Metrics, FloatsReadBackToTheSameBits) {
  std::vector<double> values = {0.0,
                                -0.0,
                                0.1,
                                1.0 / 3,
                                5e-324,
                                2.2250738585072014e-308,
                                std::numeric_limits<double>::max(),
                                9007199254740993.0,
                                static_cast<double>(0.1f)};
  std::mt19937_64 random(5);
  while (values.size() < 20'000) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    StepRecord one = record();
    one.loss = value;
    const std::string json = to_json(one);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(read_back(json, "loss")), std::bit_cast<std::uint64_t>(value)) << json;
  }
}

TEST(Metrics, RefusesNumbersThatJsonCannotHold) {
  StepRecord bad = record();
  bad.grad_norm = std::numeric_limits<double>::quiet_NaN();
  try {
    to_json(bad);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "step 3: grad_norm is nan, which JSON cannot hold");
  }
  bad = record();
  bad.eval_perplexity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(to_json(bad), Error);
}

TEST(MetricsFile, AppendsEachRecordAtOnceAndCountsThoseThatAreMissing) {
  const TempFolder folder;
  std::vector<std::string> problems;
  const auto report_problem = [&problems](const Error& problem, bool) { problems.emplace_back(problem.what()); };
  MetricsFile file(folder / "m", report_problem);
  file.write(record());
  EXPECT_EQ(read_file(folder / "m"), to_json(record()) + "\n");
  file.write(record());
  EXPECT_EQ(read_file(folder / "m"), to_json(record()) + "\n" + to_json(record()) + "\n");
  EXPECT_EQ(file.records(), 2);
  EXPECT_EQ(file.missing(), 0);
  std::filesystem::remove(folder / "m");
  file.write(record());
  EXPECT_EQ(file.records(), 3);
  EXPECT_EQ(file.missing(), 2);

  MetricsFile full("/dev/full", report_problem);
  full.write(record());
  EXPECT_EQ(full.missing(), 1);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[1], HasSubstr("/dev/full: the record of step 3 cannot be written: No space left on device\n"));
}

TEST(MetricsFile, AnEvaluationIsAddedToTheLastRecordOnly) {
  const test::TempFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
  StepRecord one, two, evaluated;
  one.step = 1;
  two.step = evaluated.step = 2;
  evaluated.eval_loss = 0.5;
  const std::string first = to_json(one) + '\n', second = to_json(two);
  test::write_file(path, first + second + '\n');
  EXPECT_EQ(with_evaluation(path, evaluated), first + second.substr(0, second.size() - 1) + ",\"eval_loss\":0.5}\n");
  EXPECT_EQ(with_evaluation(path, {.step = 2}), first + second + '\n');
  EXPECT_EQ(with_evaluation(path, {.step = 1}), std::nullopt);
  test::write_file(path, with_evaluation(path, evaluated).value());
  EXPECT_EQ(with_evaluation(path, evaluated), std::nullopt) << "it has one";
  test::write_file(path, first + second); // a line that was cut
  EXPECT_EQ(with_evaluation(path, evaluated), std::nullopt);
  test::write_file(path, "");
  EXPECT_EQ(with_evaluation(path, evaluated), std::nullopt);
}

TEST(Missing, HasAMessage) {
  EXPECT_EQ(to_text(Missing{}, 10), "");
  EXPECT_EQ(to_text(Missing{3, 1, 2}, 10), "3 of 10 records, 1 line of logs, 2 timelines");
  Missing sum{1, 0, 0};
  EXPECT_TRUE(sum.any());
  sum.add({0, 5, 0});
  EXPECT_EQ(to_text(sum, 1), "1 of 1 record, 5 lines of logs");
}

TEST(Json, EscapesAndNests) {
  JsonObject inner;
  inner.set("flag", true);
  std::vector<JsonObject> list(2);
  list[1].set("n", -5);
  JsonObject out;
  out.set("z", "quote \" slash \\ line\n").set("a", std::vector<std::string>{"x", "y"});
  out.set("inner", std::move(inner)).set("list", std::move(list)).set("path", "not utf-8: \xff");
  EXPECT_EQ(out.line(), R"({"z":"quote \" slash \\ line\n","a":["x","y"],"inner":{"flag":true},"list":[{},{"n":-5}],)"
                        "\"path\":\"not utf-8: \xEF\xBF\xBD\"}");
}

} // namespace
} // namespace triax::report
