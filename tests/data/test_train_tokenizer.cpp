// SPDX-License-Identifier: Apache-2.0
// Training a tokenizer gives the same result as Hugging Face's library, with any number of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer_files.hpp"
#include "data/train_tokenizer.hpp"
#include "support/error_of.hpp"

namespace triax::data {
namespace {

using nlohmann::json;
using test::read_file;
using test::TempFolder;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using triax::test::error_of;

TrainTokenizerRequest request_of(const TempFolder& folder) {
  TrainTokenizerRequest request;
  request.inputs = {TRIAX_SOURCE_DIR "/tests/data/reference/corpus.txt"};
  request.output = folder / "made.json";
  request.vocab = 1000;
  return request;
}

TEST(TrainTokenizer, MakesTheTokensAndMergesThatTokenizersMakes) {
  const TempFolder folder;
  const TrainedTokenizer made = train_tokenizer(request_of(folder), {});
  const json ours = json::parse(read_file(folder / "made.json")), theirs = reference("trained.json");
  EXPECT_EQ(ours["model"]["vocab"], theirs["model"]["vocab"]);
  std::vector<std::string> merges;
  for (const json& merge : theirs["model"]["merges"])
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  EXPECT_EQ(ours["model"]["merges"].get<std::vector<std::string>>(), merges);
  EXPECT_EQ(made.tokens, 1000);
  EXPECT_EQ(made.merges, 743);
  EXPECT_EQ(read_tokenizer_json(folder / "made.json")->digest(), trained_tokenizer()->digest());
}

TEST(TrainTokenizer, GivesTheSameBytesOnAnyNumberOfThreads) {
  const TempFolder folder;
  TrainTokenizerRequest request = request_of(folder);
  std::string text;
  for (int i = 0; i < 20; ++i) text += read_file(request.inputs.front());
  write_file(folder / "text", text); // large enough for several jobs
  request.inputs = {folder / "text"};
  request.separator = "# 0003: Programs";
  train_tokenizer(request, {});
  const std::string one = read_file(request.output);
  for (const int threads : {2, 3, 4}) {
    request.threads = threads;
    train_tokenizer(request, {});
    EXPECT_EQ(read_file(request.output), one) << threads;
  }
}

TEST(TrainTokenizer, StopsWhereNoPairIsMetOftenEnough) {
  const TempFolder folder;
  TrainTokenizerRequest request = request_of(folder);
  write_file(folder / "text", "abab cd cd");
  request.inputs = {folder / "text"};
  EXPECT_EQ(train_tokenizer(request, {}).merges, 3); // "ab", "cd" and " cd" each occur twice, "abab" once
  request.min_count = 1;
  EXPECT_EQ(train_tokenizer(request, {}).merges, 4);
  request.min_count = 3;
  EXPECT_EQ(train_tokenizer(request, {}).merges, 0);
}

std::vector<std::string> reasons(const TrainTokenizerRequest& request) {
  std::vector<std::string> out;
  for (const Refusal& refusal : refusals(request)) out.push_back(refusal.message);
  return out;
}

TEST(TrainTokenizer, RefusesAllAtOnce) {
  const TempFolder folder;
  TrainTokenizerRequest request = request_of(folder);
  request.vocab = 257;
  EXPECT_THAT(reasons(request), ElementsAre());
  request.vocab = 256;
  request.min_count = 0;
  request.special_tokens = {"<a>", "<a>", ""};
  request.threads = 0;
  request.separator = "a\n";
  request.inputs = {folder / "none"};
  request.output = folder.path();
  const std::string at = folder.path().string();
  EXPECT_THAT(reasons(request),
              ElementsAre("--vocab must be in [259, 16777216], got 256", "--min-count must be at least 1, got 0",
                          "--special-token \"<a>\": is given twice", "--special-token \"\": is empty or invalid UTF-8",
                          "--separator must be a line of text without a line break",
                          "--threads must be in [1, 1024], got 0", "--input " + at + "/none: does not exist",
                          "--output " + at + ": is a folder; the tokenizer is a file"));
  std::vector<std::string> keys;
  for (const Refusal& refusal : refusals(request)) keys.insert(keys.end(), refusal.keys.begin(), refusal.keys.end());
  EXPECT_THAT(keys, ElementsAre("--vocab", "--min-count", "--special-token", "--special-token", "--separator",
                                "--threads", "--input", "--output"));
  request = request_of(folder);
  write_file(request.output, "mine");
  EXPECT_THAT(reasons(request), ElementsAre(HasSubstr("made.json: already exists")));
}

TEST(TrainTokenizer, AFailureLeavesTheOldFile) {
  const TempFolder folder;
  TrainTokenizerRequest request = request_of(folder);
  write_file(request.output, "old");
  write_file(folder / "bad", "good, then \xff bad");
  request.inputs.push_back(folder / "bad");
  EXPECT_THAT(error_of([&] { train_tokenizer(request, {}); }), HasSubstr("bad: byte 11 is not UTF-8"));
  const TrainProgress stop = {{}, [](std::int64_t, std::int64_t) { throw std::runtime_error("stop"); }};
  request.inputs.pop_back();
  EXPECT_THROW(train_tokenizer(request, stop), std::runtime_error);
  EXPECT_EQ(read_file(request.output), "old");
}

} // namespace
} // namespace triax::data
