// SPDX-License-Identifier: Apache-2.0
// Prompts as tokens, and the tokens that end a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/prepare.hpp"
#include "data/text_tokenizer.hpp"
#include "data/tokenizer_choice.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TextTokenizer, AnEmptyPromptIsTheTokenThatSeparatesDocuments) {
  TextTokenizer bytes = text_tokenizer(make_byte_tokenizer(), "--tokenizer byte");
  EXPECT_THAT(encode_prompt(bytes, "ab"), ElementsAre('a', 'b'));
  EXPECT_THAT(encode_prompt(bytes, ""), ElementsAre(ByteTokenizer::kEndOfDocument));
  bytes.ends = {7, 8};
  EXPECT_THAT(encode_prompt(bytes, ""), ElementsAre(7));
  bytes.ends.clear();
  EXPECT_THAT(error_of([&] { encode_prompt(bytes, ""); }), HasSubstr("the prompt is empty, and the tokenizer has no "));
}

TEST(TextTokenizer, APromptMayHaveAllPositions) {
  check_prompt_length({1, 2, 3}, 3);
  EXPECT_THAT(error_of([] {
                check_prompt_length({1, 2, 3}, 2);
              }),
              HasSubstr("the prompt has 3 tokens, and the model has 2 positions"));
}

TEST(TextTokenizer, OfADatasetHasTheEndOfItsDocuments) {
  const test::TempFolder folder;
  test::write_file(folder / "text.txt", "ab");
  PrepareRequest request;
  request.inputs = {folder / "text.txt"};
  request.output = folder / "text";
  request.tokenizer.name = "byte";
  prepare(request, [](std::uint64_t, std::uint64_t) {});
  const TextTokenizer opened = text_tokenizer_of(folder / "text");
  EXPECT_THAT(opened.ends, ElementsAre(ByteTokenizer::kEndOfDocument));
  EXPECT_THAT(opened.from, HasSubstr("text.json"));
}

} // namespace
} // namespace triax::data
