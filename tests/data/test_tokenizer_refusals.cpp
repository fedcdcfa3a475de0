// SPDX-License-Identifier: Apache-2.0
// Error messages for unsupported or invalid tokenizer.json, vocab.json and merges.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "data/tokenizer_choice.hpp"
#include "data/tokenizer_files.hpp"
#include "support/error_of.hpp"

namespace triax::data {
namespace {

using nlohmann::json;
using test::TempFolder;
using test::write_file;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using triax::test::error_of;

const std::string kByteLevel =
    "  only byte-level tokenizers are supported, as of GPT-2, Llama 3, Qwen 2, Qwen 2.5, Qwen 3 and SmolLM; "
    "docs/models.md says what to do with others";

const std::string kDamaged = "\n  the file was damaged, or is not a tokenizer.json: restore it";

/// The message without the folder.
std::string refusal_of(const std::string& bytes) {
  const TempFolder folder;
  write_file(folder / "t.json", bytes);
  const std::string text = error_of([&] { read_tokenizer_json(folder / "t.json"); });
  EXPECT_THAT(text, StartsWith((folder / "t.json").string() + ": "));
  return text.substr((folder.path().string() + "/").size());
}

/// The message for the trained tokenizer with another value at `pointer`.
std::string refusal_with(const std::string& pointer, const std::string& value) {
  json content = reference("trained.json");
  content[json::json_pointer(pointer)] = json::parse(value);
  return refusal_of(content.dump());
}

TEST(TokenizerJson, RefusesUnsupportedFilesWithTheseMessages) {
  EXPECT_EQ(refusal_of("{"), "t.json: is not valid JSON: unexpected end of file at byte 2" + kDamaged);
  EXPECT_EQ(refusal_of("[]"), "t.json: is []: it must be an object" + kDamaged);
  EXPECT_EQ(refusal_of(R"({"model": {}})"), "t.json: model has no key \"type\"" + kDamaged);
  EXPECT_EQ(refusal_of(std::string(200, '[') + std::string(200, ']')),
            "t.json: is nested more than 100 levels deep" + kDamaged);
  EXPECT_EQ(refusal_with("/model/type", "\"Unigram\""),
            "t.json: model.type is \"Unigram\": it must be \"BPE\"\n" + kByteLevel);
  EXPECT_EQ(refusal_with("/model/dropout", "0.1"),
            "t.json: model.dropout is 0.1, which is not supported\n"
            "  set it to null: the same text must give the same tokens");
  EXPECT_EQ(refusal_with("/model/byte_fallback", "true"),
            "t.json: model.byte_fallback is true, which is not supported\n" + kByteLevel);
  EXPECT_EQ(refusal_with("/decoder", R"({"type": "WordPiece"})"),
            "t.json: decoder.type is \"WordPiece\": it must be \"ByteLevel\"\n" + kByteLevel);
  EXPECT_EQ(refusal_with("/normalizer", R"({"type": "NFKC"})"),
            "t.json: normalizer.type is \"NFKC\"\n"
            "  supported: null, NFC, and a Sequence of NFC");
  EXPECT_EQ(refusal_with("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]})"),
            "t.json: normalizer.normalizers[1].type is \"Strip\"\n"
            "  supported: null, NFC, and a Sequence of NFC");
  EXPECT_EQ(refusal_with("/pre_tokenizer", R"({"type": "Whitespace"})"),
            "t.json: pre_tokenizer.type is \"Whitespace\"\n"
            "  supported: ByteLevel, or a Sequence of Split and Digits that ends with ByteLevel");
  EXPECT_EQ(refusal_with("/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type":
                "ByteLevel"}]})"),
            "t.json: pre_tokenizer.pretokenizers[0] has no key \"individual_digits\"" + kDamaged);
  EXPECT_EQ(refusal_with("/model/merges/5", "[\"a\"]"),
            "t.json: model.merges[5] is [\"a\"]: it must be two tokens, [\"a\", \"b\"] or \"a b\"" + kDamaged);
  EXPECT_EQ(refusal_with("/model/merges/5", "\"a \\u4e2d\""),
            "t.json: model.merges[5] needs the token \"中\", which the vocabulary lacks" + kDamaged);
  EXPECT_EQ(refusal_with("/model/vocab/new", "5"),
            "t.json: model.vocab gives \"new\" the id 5, which \"%\" already has" + kDamaged);
  EXPECT_EQ(refusal_with("/model/vocab/new", "-5"),
            "t.json: model.vocab.new is -5: an id must be an integer in [0, 16777215]" + kDamaged);
  EXPECT_EQ(refusal_with("/added_tokens/0/lstrip", "true"),
            "t.json: added_tokens[0].lstrip is true, which is not supported\n"
            "  only added tokens that match anywhere are supported");
  EXPECT_EQ(refusal_with("/added_tokens/0/id", "7"),
            "t.json: added_tokens[0] has the id 7, but \"<|endoftext|>\" has 0 in model.vocab" + kDamaged);
  EXPECT_EQ(refusal_with("/added_tokens/0/content", "\"<new>\""),
            "t.json: added_tokens[0] has the id 0, but the next id is 1000\n"
            "  `tokenizers` numbers added tokens without gaps, whatever the file says; list them in their order");
  EXPECT_EQ(
      refusal_with("/extra", "1"),
      "t.json: has the unknown key \"extra\"\n"
      "  known: version, truncation, padding, added_tokens, normalizer, pre_tokenizer, post_processor, decoder, model");
}

/// A file of Llama 2 has other reasons too, which are not what the reader needs.
TEST(TokenizerJson, SentencePieceIsNamedFirst) {
  json content = reference("trained.json");
  content["model"]["byte_fallback"] = true;
  content["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}]})");
  content["pre_tokenizer"] = nullptr;
  EXPECT_EQ(refusal_of(content.dump()), "t.json: model.byte_fallback is true, which is not supported\n" + kByteLevel);
}

TEST(TokenizerJson, AByteWithoutATokenIsRefused) {
  json content = reference("trained.json");
  content["model"]["vocab"].erase("!");
  content["model"]["merges"] = json::array();
  EXPECT_EQ(refusal_of(content.dump()), "t.json: the byte 33 (!) has no token\n" + kByteLevel);
}

std::string pattern_refusal(const std::string& regex) {
  const json step = {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
  const json last = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return refusal_with("/pre_tokenizer", json{{"type", "Sequence"}, {"pretokenizers", {step, last}}}.dump());
}

TEST(TokenizerJson, PatternsOutsideOfTheSharedSyntaxAreRefusedWithTheirPlace) {
  const auto at = [](const std::string& said) {
    return HasSubstr("t.json: pre_tokenizer.pretokenizers[0].pattern.Regex is not supported: the pattern " + said);
  };
  EXPECT_THAT(pattern_refusal(R"(a(?<=b)c)"), at(R"(a(?<=b)c has (?< at byte 1, which is not supported)"));
  EXPECT_THAT(pattern_refusal(R"(^a)"), at(R"(^a has ^ at byte 0)"));
  EXPECT_THAT(pattern_refusal(R"(a\b)"), at(R"(a\b has \b at byte 1)"));
  EXPECT_THAT(pattern_refusal(R"(\p{Greek}+)"), at(R"(\p{Greek}+ has \p{Greek} at byte 0)"));
  EXPECT_THAT(pattern_refusal(R"([a&&b])"), at(R"([a&&b] has && at byte 2)"));
  EXPECT_THAT(pattern_refusal(R"(a{1,2}+)"), at(R"(a{1,2}+ has + at byte 6)"));
  EXPECT_THAT(pattern_refusal(R"([\s-z])"), at(R"([\s-z] has - at byte 3)"));
  EXPECT_THAT(pattern_refusal(R"((a)"), at(R"((a is not valid: missing closing parenthesis)"));
  EXPECT_THAT(pattern_refusal(R"(a*)"), at(R"(a* matches the empty text)"));
  EXPECT_THAT(pattern_refusal(R"([a)"), at(R"([a [ without ])"));
}

TEST(Gpt2Files, SayWhichLineIsWrong) {
  const TempFolder folder;
  json vocab = reference("trained.json")["model"]["vocab"];
  write_file(folder / "vocab.json", vocab.dump());
  const auto refusal = [&](const std::string& merges) {
    write_file(folder / "merges.txt", merges);
    return error_of([&] { read_gpt2_files(folder / "vocab.json", folder / "merges.txt"); });
  };
  const std::string at = (folder / "merges.txt").string(),
                    hint = "\n  use the merges.txt that belongs to " + (folder / "vocab.json").string();
  EXPECT_EQ(refusal("#version: 0.2\ne r\nab\n"), at + ": line 3 is not two tokens with one space between them" + hint);
  EXPECT_EQ(refusal("e r\n\n"), at + ": line 2 is not two tokens with one space between them" + hint);
  EXPECT_EQ(refusal("Q Q\n"), at + ": line 1 needs the token \"QQ\", which the vocabulary lacks" + hint);
  EXPECT_THAT(error_of([&] { read_gpt2_files(folder / "no.json", folder / "merges.txt"); }),
              HasSubstr("no.json: does not exist"));
  write_file(folder / "list.json", "[]");
  EXPECT_EQ(error_of([&] { read_gpt2_files(folder / "list.json", folder / "merges.txt"); }),
            (folder / "list.json").string() +
                ": is []: it must be an object\n"
                "  the file was damaged, or is not GPT-2's vocab.json: restore it");
  EXPECT_THAT(error_of([&] {
                open_tokenizer({"gpt2", folder / "vocab.json", {}});
              }),
              HasSubstr("--tokenizer gpt2: --vocab and --merges are the two files of --tokenizer gpt2"));
  EXPECT_THAT(error_of([&] { open_tokenizer({"byte", folder / "vocab.json", {}}); }), HasSubstr("--tokenizer byte: "));
}

/// Each modified file is accepted, or refused with a message. Useful mainly under sanitizers.
TEST(TokenizerJson, AnyChangedFileIsReadOrRefused) {
  const std::string good = reference("trained.json").dump();
  std::mt19937_64 random(3);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % (change == 0 ? 900 : bytes.size()); // the steps and flags are at the beginning
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 20);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20));
      }
    }
    const TempFolder folder;
    write_file(folder / "t.json", bytes);
    try {
      const auto tokenizer = read_tokenizer_json(folder / "t.json");
      EXPECT_GT(tokenizer->encode("some text").size(), 0u);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.where(), (folder / "t.json").string());
      EXPECT_FALSE(error.hint().empty()) << error.what();
    }
  }
  EXPECT_GT(refused, 200);
}

} // namespace
} // namespace triax::data
