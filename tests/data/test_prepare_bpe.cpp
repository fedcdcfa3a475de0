// SPDX-License-Identifier: Apache-2.0
// Preparation with BPE tokenizers: long documents, threads, end-of-document tokens, and the copied tokenizer file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.hpp"
#include "data/prepare.hpp"
#include "data/tokenizer_files.hpp"
#include "support/error_of.hpp"
#include "support/sanitizers.hpp"

namespace triax::data {
namespace {

using nlohmann::json;
using test::read_file;
using test::TempFolder;
using test::write_file;
using ::testing::HasSubstr;
using triax::test::error_of;

class PrepareBpe : public ::testing::Test {
 protected:
  PrepareBpe() { write_file(folder / "t.json", reference("trained.json").dump()); }

  PrepareRequest request_of(const std::vector<std::string>& texts) const {
    PrepareRequest request;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      request.inputs.push_back(folder / ("in" + std::to_string(i)));
      write_file(request.inputs.back(), texts[i]);
    }
    request.output = folder / "out";
    request.tokenizer.name = (folder / "t.json").string();
    request.force = true;
    return request;
  }
  static std::vector<std::int32_t> ids_of(const std::filesystem::path& prefix) {
    const TokenFile file(prefix);
    std::vector<std::int32_t> out(static_cast<std::size_t>(file.tokens()));
    file.read(0, out);
    return out;
  }

  TempFolder folder;
  std::unique_ptr<Tokenizer> tokenizer = trained_tokenizer();
};

TEST_F(PrepareBpe, WritesTheIdsOfEachDocument) {
  PrepareRequest request = request_of({"Hello world\n%\nThe text of the next.\n", "end"});
  request.separator = "%";
  EXPECT_TRUE(refusals(request).empty());
  const Prepared made = prepare(request, {});
  std::vector<std::int32_t> expected = tokenizer->encode("Hello world\n");
  for (const char* text : {"The text of the next.\n", "end"})
    for (const std::int32_t id : tokenizer->encode(text)) expected.push_back(id);
  EXPECT_EQ(ids_of(folder / "out"), expected);
  EXPECT_EQ(made.train.documents, 3);
  EXPECT_EQ(made.vocab, 1000);
  const json info = json::parse(read_file(folder / "out.json"));
  EXPECT_EQ(info, (json{{"tokenizer", "bpe"}, {"vocab", 1000}, {"digest", tokenizer->digest()}}));
}

TEST_F(PrepareBpe, AppendsTheTokenThatEndsADocumentIfAsked) {
  PrepareRequest request = request_of({"one", "two"});
  request.append_eod = true;
  prepare(request, {});
  std::vector<std::int32_t> expected = tokenizer->encode("one<|endoftext|>two<|endoftext|>");
  EXPECT_EQ(ids_of(folder / "out"), expected);
  EXPECT_EQ(json::parse(read_file(folder / "out.json"))["end_of_document"], 0);
  request.eod_token = "<end>";
  ASSERT_EQ(refusals(request).size(), 1u);
  EXPECT_EQ(refusals(request)[0].message, "--append-eod: the tokenizer has no added token \"<end>\"");
  EXPECT_EQ(refusals(request)[0].hint, "name one with --eod-token: <|endoftext|>");
}

/// Documents from one byte to several jobs, and a word of 300,000 bytes.
std::vector<std::string> long_texts() {
  std::string text;
  const auto cases = reference("cases.json")["texts"].get<std::vector<std::string>>();
  for (int i = 0; i < 40; ++i) {
    for (const std::string& one : cases) text += one;
  }
  std::string lines;
  for (int i = 0; i < 9'000; ++i) lines += "a\n%\n";
  std::string marks; // one long run of letters whose marks NFC changes, and that words separate from them
  for (int i = 0; i < 30'000; ++i) marks += i % 3 == 0 ? "e\u0323\u0301\u0301" : "\u1112\u1161o\u0308";
  return {text, lines, "before " + std::string(300'000, 'w') + " after", std::string(200'000, ' ') + "\n" + text,
          marks};
}

TEST_F(PrepareBpe, ALongDocumentIsEncodedAsAWhole) {
  const std::vector<std::size_t> some = {0, 10, 15}, variants = {0, 3, 8, 10, 12, 15, 16};
  for (const std::size_t variant : test::kSanitized ? some : variants) {
    const json all = reference("cases.json")["cases"];
    const auto other = patched_tokenizer(all[variant]["patch"]);
    write_file(folder / "t.json", other->json());
    for (const std::string& text : long_texts()) {
      prepare(request_of({text}), {});
      EXPECT_EQ(ids_of(folder / "out"), other->encode(text)) << all[variant]["tokenizer"];
    }
  }
}

TEST_F(PrepareBpe, WritesTheSameOnAnyNumberOfThreads) {
  PrepareRequest request = request_of(long_texts());
  request.separator = "%";
  request.append_eod = true;
  request.validation_fraction = 0.1;
  prepare(request, {});
  std::vector<std::string> one;
  const std::vector<const char*> names = {"out.bin", "out.idx", "out.json", "out-validation.bin", "out-validation.idx"};
  for (const char* name : names) one.push_back(read_file(folder / name));
  for (const int threads : {2, 3, 4}) {
    request.threads = threads;
    prepare(request, {});
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(read_file(folder / names[i]), one[i]) << names[i];
  }
}

TEST_F(PrepareBpe, AWordWithoutAnEndIsRefusedNamingItsPlace) {
  EXPECT_EQ(error_of([&] { prepare(request_of({"x " + std::string(2'200'000, 'y')}), {}); }),
            (folder / "in0").string() +
                ": contains a word of more than 1048576 bytes, before byte 2162688\n"
                "  split it; or use --tokenizer byte, which does not use words");
  EXPECT_THAT(error_of([&] { prepare(request_of({"x " + std::string(1'200'000, 'y') + " z"}), {}); }),
              HasSubstr("in0: contains a word of more than 1048576 bytes, before byte 1200004"));
  prepare(request_of({std::string(1'000'000, 'y')}), {});
  EXPECT_EQ(ids_of(folder / "out"), tokenizer->encode(std::string(1'000'000, 'y')));
}

TEST_F(PrepareBpe, RefusesInvalidUtf8AndNamesTheFirstByte) {
  const std::string hint =
      "\n"
      "  convert it to UTF-8, for example with iconv; or use --tokenizer byte, which accepts any bytes";
  for (const char* bad :
       {"\xff", "\xc3(", "\xe2\x82", "\xed\xa0\x80", "\xc0\x80", "\xf5\x80\x80\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(error_of([&] {
                prepare(request_of({"fine", "fine \xc3\xa9" + std::string(bad)}), {});
              }),
              (folder / "in1").string() + ": byte 7 is not UTF-8" + hint);
  }
  EXPECT_THAT(error_of([&] { prepare(request_of({std::string(65'535, 'a') + "\xc3\xa9" + "\x80"}), {}); }),
              HasSubstr("in0: byte 65537 is not UTF-8"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out.bin"));
}

TEST_F(PrepareBpe, TheTokenizerStaysBesideItsDataset) {
  PrepareRequest request = request_of({"text", "more"});
  request.validation_fraction = 0.5;
  prepare(request, {});
  for (const char* name : {"out", "out-validation"}) {
    const auto found = open_tokenizer_of(folder / name);
    EXPECT_EQ(found->digest(), tokenizer->digest());
    EXPECT_EQ(found->decode(ids_of(folder / name)), name == std::string("out") ? "text" : "more");
  }
  json other = reference("trained.json");
  other["model"]["ignore_merges"] = true;
  write_file(folder / "out-tokenizer.json", other.dump());
  EXPECT_THAT(
      error_of([&] { open_tokenizer_of(folder / "out"); }),
      HasSubstr("out-tokenizer.json: is not the tokenizer that " + (folder / "out.bin").string() + " was made with"));

  request.tokenizer.name = "byte"; // has no such file
  prepare(request, {});
  EXPECT_FALSE(std::filesystem::exists(folder / "out-tokenizer.json"));
  EXPECT_EQ(open_tokenizer_of(folder / "out")->decode(ids_of(folder / "out")), "text");
}

TEST_F(PrepareBpe, ALargeVocabularyTakesFourBytesAToken) {
  json content = reference("trained.json");
  for (int id = 1000; id < 70'000; ++id) content["model"]["vocab"]["token " + std::to_string(id)] = id;
  content["added_tokens"].push_back({{"id", 70'000}, {"content", "<last>"}, {"special", true}});
  write_file(folder / "t.json", content.dump());
  const Prepared made = prepare(request_of({"text<last>"}), {});
  EXPECT_EQ(ids_of(folder / "out").back(), 70'000);
  EXPECT_EQ(made.vocab, 70'001);
  EXPECT_EQ(made.train.bytes, 4 * static_cast<std::uint64_t>(made.train.tokens));
}

TEST_F(PrepareBpe, RefusesAnInvalidTokenizer) {
  PrepareRequest request = request_of({"text"});
  write_file(folder / "t.json", "{}");
  ASSERT_EQ(refusals(request).size(), 1u);
  EXPECT_EQ(refusals(request)[0].message, (folder / "t.json").string() + ": has no key \"model\"");
  request.threads = 0;
  EXPECT_EQ(refusals(request)[1].message, "--threads must be in [1, 1024], got 0");
}

} // namespace
} // namespace triax::data
