// SPDX-License-Identifier: Apache-2.0
// Prompts as tokens, and the tokens that end a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/prepare.hpp"
#include "data/text_tokenizer.hpp"
#include "data/tokenizer_choice.hpp"
#include "data/tokenizer_files.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using test::error_of;
using test::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TextTokenizer, AnEmptyPromptIsTheTokenThatSeparatesDocuments) {
  TextTokenizer bytes = make_text_tokenizer(make_byte_tokenizer(), "--tokenizer byte");
  EXPECT_THAT(encode_prompt(bytes, "ab"), ElementsAre('a', 'b'));
  EXPECT_THAT(encode_prompt(bytes, ""), ElementsAre(ByteTokenizer::kEndOfDocument));
  bytes.ends = {7, 8};
  EXPECT_THAT(encode_prompt(bytes, ""), ElementsAre(7));
  bytes.ends.clear();
  EXPECT_THAT(error_of([&] { encode_prompt(bytes, ""); }), HasSubstr("the prompt is empty, but the tokenizer has no "));
}

TEST(TextTokenizer, APromptWithoutTokensIsNotTakenForAnEmptyOne) {
  const nlohmann::json words = {
      {"type", "Split"}, {"pattern", {{"Regex", "\\S+"}}}, {"behavior", "Removed"}, {"invert", true}};
  const nlohmann::json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const TextTokenizer of = make_text_tokenizer(
      patched_tokenizer({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {words, bytes}}}}}), "words");
  EXPECT_THAT(encode_prompt(of, ""), ElementsAre(of.ends.front()));
  EXPECT_THAT(error_of([&] { encode_prompt(of, "  "); }),
              HasSubstr("the prompt has no token: the tokenizer removes all of its text"));
}

TEST(TextTokenizer, EndsOfABpeTokenizerAreEndOfTextIfItHasThisToken) {
  const auto trained = trained_tokenizer();
  const std::optional<std::int32_t> end = trained->id_of(kEndOfText);
  ASSERT_TRUE(end);
  EXPECT_THAT(make_text_tokenizer(trained_tokenizer(), "trained.json").ends, ElementsAre(*end));
  EXPECT_THAT(make_text_tokenizer(trained_tokenizer(), "trained.json", {3}).ends, ElementsAre(3));
  const auto without = [] { return patched_tokenizer({{"added_tokens", nlohmann::json::array()}}); };
  EXPECT_THAT(make_text_tokenizer(without(), "without").ends, IsEmpty());
}

TEST(TextTokenizer, ExportedJsonGivesTheSameIds) {
  const TempFolder folder;
  const auto exported = [&](const Tokenizer& tokenizer) {
    test::write_file(folder / "tokenizer.json", exported_json(tokenizer));
    return read_tokenizer_json(folder / "tokenizer.json");
  };
  const auto bytes = make_byte_tokenizer();
  const auto as_bpe = exported(*bytes);
  EXPECT_EQ(as_bpe->vocab(), bytes->vocab());
  EXPECT_EQ(as_bpe->id_of(kEndOfText), ByteTokenizer::kEndOfDocument);
  const auto trained = trained_tokenizer();
  EXPECT_EQ(exported(*trained)->digest(), trained->digest());
  for (const auto& text : reference("cases.json")["texts"].get<std::vector<std::string>>()) {
    if (text.find(kEndOfText) != std::string::npos) continue; // one token, and bytes of the byte tokenizer
    EXPECT_EQ(as_bpe->encode(text), bytes->encode(text));
  }
}

TEST(TextTokenizer, APromptMayHaveAllPositions) {
  check_prompt_length({1, 2, 3}, 3);
  EXPECT_THAT(error_of([] {
                check_prompt_length({1, 2, 3}, 2);
              }),
              HasSubstr("the prompt has 3 tokens, but the model has 2 positions"));
}

TEST(TextTokenizer, OfADatasetHasTheEndOfItsDocuments) {
  const test::TempFolder folder;
  test::write_file(folder / "text.txt", "ab");
  PrepareRequest request;
  request.inputs = {folder / "text.txt"};
  request.output = folder / "text";
  request.tokenizer.name = "byte";
  prepare(request, [](std::uint64_t, std::uint64_t) {});
  const TextTokenizer opened = open_text_tokenizer_of(folder / "text");
  EXPECT_THAT(opened.ends, ElementsAre(ByteTokenizer::kEndOfDocument));
  EXPECT_THAT(opened.from, HasSubstr("text.json"));
}

} // namespace
} // namespace triax::data
