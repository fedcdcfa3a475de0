// SPDX-License-Identifier: Apache-2.0
// NFC is that of `tokenizers` for every character, and does not depend on where a text is cut into parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "data/character_hash.hpp"
#include "data/tokenizer/nfc.hpp"
#include "data/tokenizer/utf8.hpp"
#include "data/tokenizer_files.hpp"
#include "support/sanitizers.hpp"

namespace triax::data {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// The cases of cases.json whose tokenizers normalize.
std::vector<json> nfc_cases() {
  std::vector<json> out;
  const json all = reference("cases.json");
  for (const json& one : all["cases"])
    if (one["patch"].contains("normalizer")) out.push_back(one);
  return out;
}

TEST(Nfc, IsThatOfTokenizersForEveryCharacterAndMark) {
  const Nfc nfc;
  NfcText out;
  const json classes = reference("classes.json");
  for (std::size_t mark = 0; mark < classes["nfc"].size(); mark += test::kSanitized ? 9 : 1) {
    const json& known = classes["nfc"][mark];
    const auto after = known["after"].get<std::string>();
    CharacterHash hash;
    for (char32_t c = 0; c < 0x30000; ++c) { // no later character changes
      if (c >= 0xD800 && c < 0xE000) continue;
      std::string text = "\u0345";
      append_utf8(text, c);
      nfc.normalize(text + after, out);
      for (std::string_view rest = out.text(); !rest.empty();) hash.add(take_character(rest));
    }
    EXPECT_EQ(hash.text(), known["fnv"].get<std::string>()) << after;
  }
}

TEST(Nfc, FindsTextThatIsNormal) {
  const Nfc nfc;
  for (const char* normal :
       {"", "a", "plain text", "\u00e9", "日本語 한국어", "a\u0316\u0305", "Ёлка", "\u0305", "x\u034f"})
    EXPECT_TRUE(nfc.is_normal(normal)) << normal;
  for (const char* other : {"e\u0301", "a\u0305\u0327", "\u212b", "plain text e\u0301", "\u1100\u1161", "か\u3099"}) {
    EXPECT_FALSE(nfc.is_normal(other)) << other;
    EXPECT_EQ(nfc.normalized(nfc.normalized(other)), nfc.normalized(other));
  }
}

TEST(Nfc, APlaceLeadsBackToTheOriginal) {
  const Nfc nfc;
  NfcText out;
  nfc.normalize("ab e\u0323\u0301\u0301 cd\u212bz", out);
  ASSERT_EQ(out.text(), "ab \u1eb9\u0301\u0301 cd\u00c5z");
  const auto place = [&](std::size_t position) {
    const NfcText::Place found = out.place_of(position);
    return std::pair(found.byte, found.skip);
  };
  EXPECT_EQ(place(0), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_EQ(place(3), std::pair(std::size_t{3}, std::size_t{0}));
  EXPECT_EQ(place(6), std::pair(std::size_t{3}, std::size_t{3})) << "inside of a changed segment";
  EXPECT_EQ(place(10), std::pair(std::size_t{10}, std::size_t{0}));
  EXPECT_EQ(place(13), std::pair(std::size_t{12}, std::size_t{1})) << "the segment begins with the d";
  EXPECT_EQ(place(15), std::pair(std::size_t{16}, std::size_t{0}));
  EXPECT_EQ(place(16), std::pair(std::size_t{17}, std::size_t{0}));
}

TEST(Nfc, ATextIsSettledUntilItsLastSegment) {
  const Nfc nfc;
  EXPECT_EQ(nfc.settled("abc"), 2u);
  EXPECT_EQ(nfc.settled("ae\u0301\u0323"), 1u);
  EXPECT_EQ(nfc.settled("\u0301\u0323"), 0u);
  EXPECT_EQ(nfc.settled("a\u1100\u1161"), 1u);
  EXPECT_EQ(nfc.settled("a\u11a7"), 4u) << "no character joins U+11A7";
}

/// A part ends after each byte, in the original text and inside of what NFC changes.
TEST(Nfc, IdsDoNotDependOnWhereATextIsCut) {
  const auto texts = reference("cases.json")["texts"].get<std::vector<std::string>>();
  int inside = 0;
  for (const json& one : nfc_cases()) {
    const auto tokenizer = patched_tokenizer(one["patch"]);
    const auto encoder = tokenizer->encoder();
    for (const std::string& text : texts) {
      const Ids expected = tokenizer->encode(text);
      for (std::size_t shown = 1; shown < text.size(); ++shown) {
        Ids ids;
        const TextPart first{std::string_view(text).substr(0, whole_characters(text.substr(0, shown))), true, false};
        const SplitProgress done = encoder->encode(first, ids);
        inside += done.skip > 0 ? 1 : 0;
        encoder->encode({std::string_view(text).substr(done.bytes), done.begins, true, done.skip}, ids);
        ASSERT_EQ(ids, expected) << one["tokenizer"] << " at " << shown << ": " << json(text).dump();
      }
    }
  }
  EXPECT_GT(inside, 100) << "the texts have words that end inside of a changed segment";
}

/// A run of marks in the worst order: sorting it is not quadratic.
TEST(Nfc, ALongRunOfMarksIsOrdered) {
  std::string text = "a", expected = "\u1ea1"; // the first dot below joins the letter
  constexpr int kMarks = 200'000;
  for (int i = 0; i < kMarks; ++i) text += "\u0301\u0323";
  for (int i = 1; i < kMarks; ++i) expected += "\u0323";
  for (int i = 0; i < kMarks; ++i) expected += "\u0301";
  EXPECT_EQ(Nfc().normalized(text), expected);
}

TEST(Nfc, TokensAreThoseOfTheNormalizedText) {
  const auto texts = reference("cases.json")["texts"].get<std::vector<std::string>>();
  const auto tokenizer = patched_tokenizer({{"normalizer", {{"type", "NFC"}}}});
  const Nfc nfc;
  for (const std::string& text : texts) {
    if (text.find("<|endoftext|>") != std::string::npos) continue; // NFC of the whole would change the token
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), nfc.normalized(text));
  }
  EXPECT_NE(tokenizer->digest(), trained_tokenizer()->digest()) << "other ids need another digest";
}

} // namespace
} // namespace triax::data
