// SPDX-License-Identifier: Apache-2.0
// A run whose data do not have the tokenizer of its checkpoint is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/tokenizer_choice.hpp"
#include "train/preflight_run.hpp"
#include "train/resumed_run.hpp"

namespace triax {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A run that was trained on bytes, and the corpus "other" with the same ids of another tokenizer.
class ChangedTokenizer : public test::ResumedRun {
 protected:
  ChangedTokenizer() {
    test::prepare_text(run_, std::string(400, 'a'));
    has_corpora_ = true;
    for (const char* end : {".bin", ".idx"})
      fs::copy_file(run_.folder() / (std::string("text") + end), run_.folder() / (std::string("other") + end));
    test::write_file(run_.folder() / "other.json", R"({"tokenizer": "bpe", "vocab": 257, "digest": "12"})");
  }
  void SetUp() override { ASSERT_THAT(train({}, 2), IsEmpty()); }

  train::Preflight checked(const std::map<std::string, std::string>& keys, bool evaluates = false) {
    config::RunConfig config = this->config({.keys = keys}, 0);
    config.evaluates = evaluates;
    if (evaluates) config.data.training.paths.clear();
    return train::preflight(config, train::choose_placement(config), null_log());
  }
  /// The messages of refusals; without any, what the run begins with.
  std::string answer(const std::map<std::string, std::string>& keys) {
    const train::Preflight checked = this->checked(keys);
    std::string out;
    for (const Refusal& refused : checked.refusals) out += refused.message + "\n";
    return out.empty() ? checked.resume : out;
  }
  void write_imported(const std::string& json) {
    fs::create_directories(checkpoint("run", 2) / "hf");
    test::write_file(checkpoint("run", 2) / "hf/tokenizer.json", json);
  }
  void forget_recorded() {
    const fs::path file = checkpoint("run", 2) / "manifest.json";
    checkpoint::Manifest manifest = checkpoint::read_manifest(file);
    for (checkpoint::CorpusContent& corpus : manifest.data.training) corpus.tokenizer.reset();
    test::write_file(file, checkpoint::to_json(manifest));
  }

  const std::string other_ = "\"other\"";
};

TEST_F(ChangedTokenizer, OfTheDataIsRefusedUnlessItIsAccepted) {
  const train::Preflight refused = checked({{"data.path", other_}});
  ASSERT_EQ(refused.refusals.size(), 1u);
  EXPECT_EQ(refused.refusals.front().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.refusals.front().keys, ElementsAre("data.path"));
  EXPECT_THAT(refused.refusals.front().message,
              testing::MatchesRegex("data.path: .*/other and the data of .*/step-00000002 have different tokenizers: "
                                    "bpe of 257 ids \\(12\\), and byte of 257 ids \\(byte\\)"));
  EXPECT_THAT(refused.refusals.front().hint,
              AllOf(StartsWith("prepare the text with that of the checkpoint: triax data prepare --input FILE... "
                               "--output PREFIX --tokenizer byte\n"),
                    EndsWith("--set checkpoint.changed_data=accept")));
  EXPECT_THAT(
      answer({{"data.path", other_}, {"checkpoint.changed_data", "\"accept\""}}),
      AllOf(StartsWith("continues after step 2 from "), HasSubstr("have different tokenizers: bpe of 257 ids")));
  EXPECT_THAT(answer({{"log.level", "\"warn\""}}), Not(HasSubstr("tokenizers")));
  run_.keys["data.path"] = other_;
  run_.keys["checkpoint.changed_data"] = "\"accept\"";
  ASSERT_THAT(train({}, 3), IsEmpty());
  EXPECT_THAT(answer({{"checkpoint.changed_data", "\"refuse\""}}), StartsWith("continues after step 3 from "))
      << "step 3 has used the new tokenizer";
}

/// A new optimizer does not make the weights fit other ids.
TEST_F(ChangedTokenizer, IsRefusedForWeightsOfAnotherRun) {
  std::map<std::string, std::string> keys = {{"data.path", other_},
                                             {"run.dir", "\"new\""},
                                             {"checkpoint.load", "\"weights\""},
                                             {"checkpoint.from", text("\"{}\"", checkpoint("run", 2))}};
  const train::Preflight refused = checked(keys);
  ASSERT_EQ(refused.refusals.size(), 1u);
  EXPECT_THAT(refused.refusals.front().keys, ElementsAre("data.path", "checkpoint.from"));
  keys["checkpoint.changed_data"] = "\"accept\"";
  EXPECT_THAT(answer(keys), AllOf(StartsWith("begins with the weights of "), HasSubstr("different tokenizers")));
}

TEST_F(ChangedTokenizer, OfHeldOutDataIsRefusedInAnEvaluation) {
  run_.keys["data.path"] = run_.keys["data.validation"] = other_;
  run_.keys["eval.every"] = "1";
  const train::Preflight refused = checked({}, true);
  ASSERT_EQ(refused.refusals.size(), 1u);
  EXPECT_THAT(refused.refusals.front().keys, ElementsAre("data.validation"));
  EXPECT_THAT(refused.refusals.front().message, StartsWith("data.validation: "));
  EXPECT_THAT(refused.refusals.front().hint, Not(HasSubstr("accept")));
  run_.keys["data.path"] = run_.keys["data.validation"] = "\"text\"";
  EXPECT_TRUE(checked({}, true).refusals.empty());
}

/// Earlier versions did not record it.
TEST_F(ChangedTokenizer, WithoutARecordIsFoundByTheFilesOfTheEarlierData) {
  forget_recorded();
  EXPECT_THAT(answer({{"data.path", other_}}),
              testing::ContainsRegex("data.path: .*/other and .*/text, the data of .*/step-00000002, have different"));
  fs::remove(run_.folder() / "text.json");
  EXPECT_THAT(answer({{"data.path", other_}, {"model.vocab", "257"}}), StartsWith("continues after step 2 from "));
}

TEST_F(ChangedTokenizer, OfAnImportedModelIsRefused) {
  write_imported(data::exported_json(*data::make_byte_tokenizer()));
  EXPECT_THAT(answer({}), StartsWith("continues after step 2 from ")) << "it gives the ids of bytes";
  EXPECT_THAT(answer({{"data.path", other_}}), HasSubstr("step-00000002/hf/tokenizer.json have different tokenizers"));
  fs::copy_file(TOKENIZERS "/trained.json", checkpoint("run", 2) / "hf/tokenizer.json",
                fs::copy_options::overwrite_existing);
  const train::Preflight refused = checked({});
  ASSERT_EQ(refused.refusals.size(), 1u);
  EXPECT_THAT(
      refused.refusals.front().message,
      testing::MatchesRegex("data.path: .*/text and .*/hf/tokenizer.json have different tokenizers: byte of 257 "
                            "ids \\(byte\\), and bpe of [0-9]+ ids \\([0-9a-f]+\\)"));
  EXPECT_THAT(refused.refusals.front().hint, HasSubstr("--tokenizer " + checkpoint("run", 2).string() + "/hf/"));
}

TEST_F(ChangedTokenizer, OneThatCannotBeReadIsNotCompared) {
  write_imported("{}");
  EXPECT_THAT(answer({}), StartsWith("continues after step 2 from "));
  fs::copy_file(run_.folder() / "text.bin", run_.folder() / "plain.bin");
  fs::copy_file(run_.folder() / "text.idx", run_.folder() / "plain.idx");
  EXPECT_THAT(answer({{"data.path", "\"plain\""}, {"model.vocab", "257"}}), StartsWith("continues after step 2 from "));
}

} // namespace
} // namespace triax
