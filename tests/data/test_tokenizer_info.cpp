// SPDX-License-Identifier: Apache-2.0
// The tokenizer file next to a corpus: errors in it, and how to create it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer_choice.hpp"
#include "data/tokenizer_difference.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using ::testing::HasSubstr;
using namespace triax::test;

std::string info_failure(const TempFolder& folder, const std::string& content) {
  write_file(folder / "d.json", content);
  try {
    read_tokenizer_info(folder / "d");
  } catch (const Error& error) {
    return error.message() + (error.hint().find("triax data prepare") == std::string::npos ? " (no hint)" : "");
  }
  return "(accepted)";
}

TEST(TokenizerInfo, ExplainsInvalidFiles) {
  const TempFolder folder;
  EXPECT_EQ(info_failure(folder, R"({"tokenizer": "byte", "vocab": 257, "more": 1})"), "(accepted)");
  EXPECT_THAT(info_failure(folder, "{"), HasSubstr("is not valid JSON: unexpected end of file at byte 2"));
  EXPECT_EQ(info_failure(folder, "[1e999]"), "is not valid JSON: a number in it is out of range");
  EXPECT_EQ(info_failure(folder, "[]"), "has no key \"tokenizer\": the name of a tokenizer");
  EXPECT_EQ(info_failure(folder, R"({"tokenizer": 5})"), "key \"tokenizer\" is 5; it must be the name of a tokenizer");
  EXPECT_EQ(info_failure(folder, R"({"tokenizer": "byte"})"), "has no key \"vocab\": an integer in [1, 2147483647]");
  for (const char* vocab : {"0", "-1", "2147483648", "2.5", "\"257\"", "null", "18446744073709551615"}) {
    EXPECT_EQ(info_failure(folder, std::string(R"({"tokenizer": "byte", "vocab": )") + vocab + "}"),
              std::string("key \"vocab\" is ") + vocab + "; it must be an integer in [1, 2147483647]");
  }
  const auto with_end = [&folder](const std::string& end) {
    return info_failure(folder, R"({"tokenizer": "byte", "vocab": 257, "end_of_document": )" + end + "}");
  };
  EXPECT_EQ(with_end("256"), "(accepted)");
  for (const std::string end : {"257", "-1", "2.5", "\"256\"", "null", "[256]", "{}"})
    EXPECT_EQ(with_end(end), "key \"end_of_document\" is " + end + "; it must be an integer in [0, 256]");
  EXPECT_EQ(with_end("\"" + std::string(1000, 'x') + "\""),
            "key \"end_of_document\" is \"" + std::string(199, 'x') + "...; it must be an integer in [0, 256]");
}

TEST(TokenizerInfo, AMissingFileSaysHowToMakeIt) {
  const TempFolder folder;
  try {
    read_tokenizer_info(folder / "d");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), (folder / "d.json").string());
    EXPECT_EQ(error.hint(), "prepare it with: triax data prepare --input FILE... --output " + (folder / "d").string() +
                                " --tokenizer byte\n"
                                "  or set model.vocab, for token files of another program");
  }
}

/// The byte tokenizer would give ids that the weights do not know.
TEST(TokenizerInfo, ForACheckpointTheHintNamesItsTokenizer) {
  const TempFolder folder;
  const std::string command = "triax data prepare --input FILE... --output " + (folder / "d").string();
  EXPECT_EQ(how_to_prepare(folder / "d", folder / "checkpoint"), "prepare it with: " + command + " --tokenizer NAME");
  std::filesystem::create_directories(folder / "checkpoint/hf");
  const std::string tokenizer = (folder / "checkpoint/hf/tokenizer.json").string();
  write_file(tokenizer, "{}");
  EXPECT_EQ(how_to_prepare(folder / "d", folder / "checkpoint"),
            "prepare it with: " + command + " --tokenizer " + tokenizer);
  write_file(folder / "d.bin", "");
  EXPECT_EQ(how_to_prepare(folder / "d", folder / "checkpoint"),
            "prepare the dataset again with its tokenizer: " + command + " --tokenizer " + tokenizer + " --force");
}

/// What is wrong with a file is reported where the tokenizer is needed.
TEST(TokenizerInfo, IsFoundIfTheFileDescribesATokenizer) {
  const TempFolder folder;
  EXPECT_FALSE(find_tokenizer_info(folder / "d"));
  for (const char* content : {"{}", "{", R"({"tokenizer": "byte"})"}) {
    write_file(folder / "d.json", content);
    EXPECT_FALSE(find_tokenizer_info(folder / "d")) << content;
  }
  write_file(folder / "d.json", R"({"tokenizer": "bpe", "vocab": 300, "digest": "12"})");
  ASSERT_TRUE(find_tokenizer_info(folder / "d"));
  EXPECT_EQ(find_tokenizer_info(folder / "d")->digest, "12");
}

TEST(TokenizerInfo, TokenizersWithTheSameIdsAreEqual) {
  const TokenizerInfo bytes = info_of(*make_byte_tokenizer()), one{"bpe", 300, "1"}, other{"bpe", 300, "2"};
  EXPECT_TRUE(gives_same_ids(one, TokenizerInfo{"bpe", 300, "1"}));
  EXPECT_FALSE(gives_same_ids(one, other));
  EXPECT_FALSE(gives_same_ids(bytes, one));
  EXPECT_FALSE(gives_same_ids(one, bytes));
  const TokenizerInfo json = info_of(*parse_tokenizer_json(exported_json(*make_byte_tokenizer()), "file"));
  EXPECT_NE(json.digest, bytes.digest);
  EXPECT_TRUE(gives_same_ids(bytes, json)) << "an exported model has this file";
  EXPECT_TRUE(gives_same_ids(json, bytes));
  EXPECT_EQ(different_tokenizers("here", bytes, "there", other),
            "here and there have different tokenizers: byte of 257 ids (byte), and bpe of 300 ids (2)");
}

} // namespace
} // namespace triax::data
