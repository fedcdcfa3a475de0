// SPDX-License-Identifier: Apache-2.0
// Tokenizers give the same ids as Hugging Face's, for texts that are hard to split.
#include <gtest/gtest.h>

#include "data/character_hash.hpp"
#include "data/tokenizer/pattern.hpp"
#include "data/tokenizer/utf8.hpp"
#include "data/tokenizer_files.hpp"

namespace triax::data {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

const std::vector<std::string>& texts() {
  static const auto all = reference("cases.json")["texts"].get<std::vector<std::string>>();
  return all;
}

const json& cases() {
  static const json all = reference("cases.json")["cases"];
  return all;
}

Ids expected(const json& one, std::size_t text) {
  const json& own = one["ids"][text];
  return (own.is_null() ? cases()[0]["ids"][text] : own).get<Ids>();
}

// One test for all tokenizers: to read the reference takes longer than to encode its texts.
TEST(TokenizerReference, GivesTheSameIds) {
  for (const json& one : cases()) {
    const auto tokenizer = patched_tokenizer(one["patch"]);
    ASSERT_EQ(one["ids"].size(), texts().size());
    for (std::size_t i = 0; i < texts().size(); ++i) {
      EXPECT_EQ(tokenizer->encode(texts()[i]), expected(one, i)) << one["tokenizer"] << ": " << json(texts()[i]).dump();
    }
  }
}

/// Encodes a text in parts, cut where the encoder allows it, after `step` more bytes each.
Ids encode_in_parts(Encoder& encoder, std::string_view rest, std::size_t step) {
  Ids ids;
  bool begins = true;
  std::size_t skip = 0;
  for (std::size_t shown = step; !rest.empty(); shown += step) {
    if (shown >= rest.size()) {
      encoder.encode({rest, begins, true, skip}, ids);
      break;
    }
    const TextPart part{rest.substr(0, whole_characters(rest.substr(0, shown))), begins, false, skip};
    const PartCut cut = encoder.cut(part);
    if (cut.done.bytes == 0) continue;
    if (cut.closed) {
      encoder.encode({part.text.substr(0, cut.done.bytes), begins, true, skip}, ids);
    } else {
      EXPECT_EQ(encoder.encode(part, ids).bytes, cut.done.bytes);
    }
    rest.remove_prefix(cut.done.bytes);
    begins = cut.done.begins;
    skip = cut.done.skip;
    shown = 0;
  }
  return ids;
}

TEST(TokenizerReference, GivesTheSameIdsInParts) {
  for (const json& one : cases()) {
    const auto tokenizer = patched_tokenizer(one["patch"]);
    const auto encoder = tokenizer->encoder();
    for (std::size_t i = 0; i < texts().size(); ++i) {
      for (const std::size_t step : {1, 3, 17}) {
        EXPECT_EQ(encode_in_parts(*encoder, texts()[i], step), expected(one, i))
            << one["tokenizer"] << " by " << step << ": " << json(texts()[i]).dump();
      }
    }
  }
}

TEST(TokenizerReference, Gpt2sOwnFilesGiveTheSameIds) {
  const test::TempFolder folder;
  const json trained = reference("trained.json");
  test::write_file(folder / "vocab.json", trained["model"]["vocab"].dump());
  std::string merges = "#version: 0.2\n";
  for (const json& merge : trained["model"]["merges"]) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  test::write_file(folder / "merges.txt", merges);
  const auto tokenizer = read_gpt2_files(folder / "vocab.json", folder / "merges.txt");
  for (std::size_t i = 0; i < texts().size(); ++i) {
    EXPECT_EQ(tokenizer->encode(texts()[i]), expected(cases()[0], i)) << texts()[i];
  }
  EXPECT_EQ(tokenizer->digest(), trained_tokenizer()->digest()) << "the same tokenizer in other files";
  test::write_file(folder / "copy.json", tokenizer->json());
  EXPECT_EQ(read_tokenizer_json(folder / "copy.json")->digest(), tokenizer->digest());
}

std::string fnv(const std::vector<char32_t>& numbers) {
  CharacterHash hash;
  for (const char32_t number : numbers) hash.add(number);
  return hash.text();
}

/// Compares letters, digits and blanks for every code point.
TEST(TokenizerReference, ClassesHaveTheSameMembers) {
  const json classes = reference("classes.json");
  for (const auto& [name, known] : classes.items()) {
    if (!known.is_object()) continue;
    const Pattern pattern(known["pattern"].get<std::string>());
    Search search(pattern);
    std::vector<char32_t> members;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      std::string text;
      append_utf8(text, c);
      if (search.next(text, 0, true)) members.push_back(c);
    }
    EXPECT_EQ(members.size(), known["count"]) << name;
    EXPECT_EQ(fnv(members), known["fnv"].get<std::string>()) << name;
  }
}

TEST(TokenizerReference, LettersOfEitherCaseAreTheSame) {
  const Pattern pattern("(?i:'s)");
  Search search(pattern);
  std::vector<std::string> found;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "'";
    append_utf8(text, c);
    if (search.next(text, 0, true)) found.push_back(text);
  }
  EXPECT_EQ(found, reference("classes.json")["apostrophe s"].get<std::vector<std::string>>());
}

TEST(TokenizerReference, EveryTextComesBack) {
  for (const auto& tokenizer : {trained_tokenizer(), patched_tokenizer(cases()[9]["patch"])}) {
    for (const std::string& text : texts()) EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

} // namespace
} // namespace triax::data
