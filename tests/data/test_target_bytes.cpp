// SPDX-License-Identifier: Apache-2.0
// The bytes of text that targets stand for, for every tokenizer, and the reason if they are not known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/prepare.hpp"
#include "data/target_bytes.hpp"
#include "data/tokenizer_choice.hpp"
#include "support/temp_folder.hpp"

namespace triax::data {
namespace {

using ::testing::HasSubstr;

class TargetBytesOf : public ::testing::Test {
 protected:
  /// Prepares `text` as folder/NAME.
  void prepare(const std::string& name, const std::string& text, const std::string& tokenizer, bool append_eod) {
    test::write_file(folder_ / (name + ".txt"), text);
    PrepareRequest request;
    request.inputs = {folder_ / (name + ".txt")};
    request.output = folder_ / name;
    request.tokenizer.name = tokenizer;
    request.append_eod = append_eod;
    request.force = true;
    data::prepare(request, [](std::uint64_t, std::uint64_t) {});
  }
  TargetBytes count(const std::vector<std::string>& names, std::int64_t sequence, std::int64_t samples) {
    Corpora corpora{{}, {}, "data.validation"};
    for (const std::string& name : names) corpora.paths.push_back(folder_ / name);
    return target_bytes(corpora, BlendedDataset(corpora, sequence, 100'000, 1), sequence, samples);
  }
  test::TempFolder folder_;
};

TEST_F(TargetBytesOf, AByteTokenIsOneByteAndTheEndOfADocumentNone) {
  prepare("bytes", "abcdefghij", "byte", false);
  const TargetBytes all = count({"bytes"}, 10, 1); // 11 tokens: targets 1 to 10, the last is the end
  EXPECT_EQ(all.bytes, 9);
  EXPECT_EQ(all.unknown, "");
  EXPECT_EQ(count({"bytes"}, 10, 100).bytes, 900); // more than one read
}

/// All tokens but the first are targets. The text is not ASCII, and the end of the document is not part of it.
TEST_F(TargetBytesOf, TokensOfATextHaveItsBytes) {
  const std::string text = "Some text, and \xC3\xA9t\xC3\xA9 twice: \xC3\xA9t\xC3\xA9.\n";
  for (const bool end : {false, true}) {
    prepare("words", text, TRIAX_SOURCE_DIR "/tests/data/reference/trained.json", end);
    const auto tokenizer = open_tokenizer_of(folder_ / "words");
    const auto first = static_cast<std::int64_t>(tokenizer->bytes_of(tokenizer->encode(text).front()).size());
    const TargetBytes all = count({"words"}, TokenFile(folder_ / "words").tokens() - 1, 1);
    EXPECT_EQ(all.bytes, static_cast<std::int64_t>(text.size()) - first) << end;
    EXPECT_EQ(all.unknown, "");
  }
}

TEST_F(TargetBytesOf, WhoseTokenizerIsNotKnownAreNotCounted) {
  prepare("bytes", "abcdefghij", "byte", false);
  std::filesystem::remove(folder_ / "bytes.json");
  const TargetBytes none = count({"bytes"}, 10, 1);
  EXPECT_EQ(none.bytes, 0);
  EXPECT_THAT(none.unknown, HasSubstr("bytes.json: does not exist"));
  prepare("bytes", "abcdefghij", "byte", false);
  prepare("words", "Some text and more", TRIAX_SOURCE_DIR "/tests/data/reference/trained.json", false);
  EXPECT_THAT(count({"bytes", "words"}, 2, 1).unknown, HasSubstr("words: was made with a different tokenizer than "));
}

/// The file's own "vocab" may be larger than the tokenizer's.
TEST_F(TargetBytesOf, AnEndOfDocumentThatTheTokenizerDoesNotHaveIsNamed) {
  prepare("bytes", "abcdefghij", "byte", false);
  test::write_file(folder_ / "bytes.json", R"({"tokenizer": "byte", "vocab": 320, "end_of_document": 300})");
  EXPECT_THAT(
      count({"bytes"}, 10, 1).unknown,
      HasSubstr("bytes.json: key \"end_of_document\" is 300, but the ids of its tokenizer \"byte\" are 0 to 256"));
}

} // namespace
} // namespace triax::data
