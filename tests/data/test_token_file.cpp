// SPDX-License-Identifier: Apache-2.0
// Reading of Megatron's token files, and refusal of inconsistent ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <limits>
#include <numeric>

#include "checksum/checksum.hpp"
#include "data/dataset.hpp"
#include "data/megatron_files.hpp"
#include "support/error_of.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace triax::test;
using triax::test::error_of;

std::vector<std::int32_t> all_tokens(const TokenFile& file) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(file.tokens()));
  file.read(0, out);
  return out;
}

template <class T>
void expect_read(std::uint8_t code, const std::vector<T>& tokens, const std::vector<std::int32_t>& expected) {
  const TempFolder folder;
  // Three sequences in two documents; the second sequence is empty.
  const auto count = static_cast<std::int32_t>(tokens.size());
  const MegatronIndex index(code, sizeof(T), {2, 0, count - 2}, {0, 1, 3});
  write_file(folder / "d.bin", raw_bytes(tokens));
  write_file(folder / "d.idx", index.bytes());
  const TokenFile file(folder / "d");
  EXPECT_EQ(file.tokens(), count) << "code " << int(code);
  EXPECT_EQ(all_tokens(file), expected) << "code " << int(code);
}

TEST(TokenFile, ReadsEveryWholeNumberType) {
  expect_read<std::uint8_t>(1, {1, 255, 7}, {1, 255, 7});
  expect_read<std::int8_t>(2, {1, 127, 7}, {1, 127, 7});
  expect_read<std::int16_t>(3, {1, 32767, 7}, {1, 32767, 7});
  expect_read<std::int32_t>(4, {1, 2147483647, 7}, {1, 2147483647, 7});
  expect_read<std::int64_t>(5, {1, 2147483647, 7}, {1, 2147483647, 7});
  expect_read<std::uint16_t>(8, {1, 65535, 7}, {1, 65535, 7});
}

TEST(TokenFile, ReadsTheBytesOfAFileWrittenByMegatron) {
  // An index for uint16 documents [5 6 7] and [8], as written by IndexedDatasetBuilder.
  const unsigned char index[] = {
      'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8,                    // magic, version, type
      2,   0,   0,   0,   0,   0,   0,   0, 3, 0, 0, 0, 0, 0, 0, 0,                          // counts
      3,   0,   0,   0,   1,   0,   0,   0,                                                  // sizes
      0,   0,   0,   0,   0,   0,   0,   0, 6, 0, 0, 0, 0, 0, 0, 0,                          // pointers
      0,   0,   0,   0,   0,   0,   0,   0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}; // documents
  const unsigned char tokens[] = {5, 0, 6, 0, 7, 0, 8, 0};
  const TempFolder folder;
  write_file(folder / "d.idx", {reinterpret_cast<const char*>(index), sizeof index});
  write_file(folder / "d.bin", {reinterpret_cast<const char*>(tokens), sizeof tokens});
  EXPECT_THAT(all_tokens(TokenFile(folder / "d")), ElementsAre(5, 6, 7, 8));
}

TEST(TokenFile, ReadsAnyPartAtAnyStride) {
  const TempFolder folder;
  write_tokens<std::uint16_t>(folder / "d", 8, {10, 11, 12, 13, 14});
  const TokenFile file(folder / "d");
  std::vector<std::int32_t> part(2);
  file.read(3, part);
  EXPECT_THAT(part, ElementsAre(13, 14));
  std::vector<std::int32_t> strided(6, -1);
  file.read(1, 3, strided.data(), 2);
  EXPECT_THAT(strided, ElementsAre(11, -1, 12, -1, 13, -1));
  EXPECT_THROW(file.read(4, part), Error);
  EXPECT_THROW(file.read(-1, part), Error);
}

TEST(TokenFile, LeavesTheFilesAsTheyAreAndReadsThoseItMayNotWrite) {
  const TempFolder folder;
  write_tokens<std::uint16_t>(folder / "d", 8, {1, 2, 3});
  const std::string bin = read_file(folder / "d.bin");
  const std::string index = read_file(folder / "d.idx");
  for (const char* name : {"d.bin", "d.idx"})
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_read);
  EXPECT_EQ(TokenFile(folder / "d").largest(), 3);
  EXPECT_EQ(read_file(folder / "d.bin"), bin);
  EXPECT_EQ(read_file(folder / "d.idx"), index);
}

TEST(TokenFile, FindsTheFirstIdOutsideAVocabularyAnywhere) {
  const TempFolder folder;
  for (const std::size_t place : {std::size_t{0}, std::size_t{16383}, std::size_t{16384}, std::size_t{39999}}) {
    std::vector<std::int32_t> tokens(40000, 5);
    tokens[place] = 300;
    tokens.back() = 400;
    write_tokens(folder / "d", 4, tokens);
    const TokenFile file(folder / "d");
    EXPECT_EQ(file.largest(), 400);
    EXPECT_FALSE(file.scan(401).outside);
    const auto found = file.scan(300).outside;
    ASSERT_TRUE(found);
    EXPECT_EQ(found->position, static_cast<std::int64_t>(place));
    EXPECT_EQ(found->id, place == 39999 ? 400 : 300);
  }
}

TEST(TokenFile, NegativeIdsAndThoseBeyond32BitsAreOutsideEveryVocabulary) {
  const TempFolder folder;
  write_tokens<std::int8_t>(folder / "a", 2, {1, -1, 2});
  const auto negative = TokenFile(folder / "a").scan(1000).outside;
  ASSERT_TRUE(negative);
  EXPECT_EQ(negative->position, 1);
  EXPECT_EQ(negative->id, -1);
  write_tokens<std::int64_t>(folder / "b", 5, {1, 2, std::int64_t{1} << 32});
  const auto large = TokenFile(folder / "b").scan(1000).outside;
  ASSERT_TRUE(large);
  EXPECT_EQ(large->id, std::int64_t{1} << 32);
}

TEST(TokenFile, TheChecksumIsOfAllBytesOfTheTokens) {
  const TempFolder folder;
  std::vector<std::uint16_t> tokens(40000, 5);
  const auto checksum_of = [&](std::int64_t vocab) {
    write_tokens(folder / "d", 8, tokens);
    return TokenFile(folder / "d").scan(vocab).checksum;
  };
  Checksum of_bytes;
  of_bytes.add(std::as_bytes(std::span(tokens)));
  const std::string before = checksum_of(6);
  EXPECT_EQ(before, of_bytes.text());
  EXPECT_EQ(checksum_of(1 << 20), before) << "also if the type holds no other ids";
  EXPECT_EQ(checksum_of(5), "") << "not all was read";
  tokens[20000] = 4;
  EXPECT_NE(checksum_of(6), before);
}

TEST(TokenFile, AnEmptyStreamIsReadable) {
  const TempFolder folder;
  write_file(folder / "d.bin", "");
  write_file(folder / "d.idx", MegatronIndex(8, 2, {}, {0}).bytes());
  const TokenFile file(folder / "d");
  EXPECT_EQ(file.tokens(), 0);
  EXPECT_FALSE(file.scan(1).outside);
}

// The message for each inconsistency.

struct Broken {
  const char* name;
  std::function<void(MegatronIndex&)> change;
  const char* says;
};

class TokenFileRefuses : public ::testing::TestWithParam<Broken> {};

std::string refusal_of(const std::filesystem::path& prefix) {
  try {
    TokenFile file(prefix);
  } catch (const Error& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST_P(TokenFileRefuses, InvalidIndices) {
  const TempFolder folder;
  MegatronIndex index(8, 2, {3, 2}, {0, 1, 2});
  GetParam().change(index);
  write_file(folder / "d.bin", raw_bytes<std::uint16_t>({1, 2, 3, 4, 5}));
  write_file(folder / "d.idx", index.bytes());
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr(GetParam().says));
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr((folder / "d.").string()));
}

INSTANTIATE_TEST_SUITE_P(
    Index, TokenFileRefuses,
    ::testing::Values(
        Broken{"magic", [](auto& i) { i.magic[0] = 'T'; }, "d.idx: begins with \"TMIDIDX..\", not with MMIDIDX"},
        Broken{"version", [](auto& i) { i.version = 2; }, "d.idx: version is 2; Triax reads version 1"},
        Broken{"float32", [](auto& i) { i.code = 7; }, "type code 7 is float32: tokens are integers"},
        Broken{"float64", [](auto& i) { i.code = 6; }, "type code 6 is float64: tokens are integers"},
        Broken{"code0", [](auto& i) { i.code = 0; }, "type code 0 is unknown\n  known: 1 u8"},
        Broken{"code9", [](auto& i) { i.code = 9; }, "type code 9 is unknown"},
        Broken{"wider", [](auto& i) { i.code = 4; },
               "d.bin: has 10 bytes, but d.idx needs at least 12 (3 tokens of 4 bytes)"},
        Broken{"narrower", [](auto& i) { i.code = 1; },
               "pointer of sequence 1 is 6, but the sequences before it end at byte 3"},
        Broken{"negative", [](auto& i) { i.sizes[1] = -2; }, "size of sequence 1 is -2: it cannot be negative"},
        Broken{"longer", [](auto& i) { i.sizes[1] = 3; },
               "d.bin: has 10 bytes, but d.idx needs at least 12 (6 tokens of 2 bytes)"},
        Broken{"shorter", [](auto& i) { i.sizes[1] = 1; },
               "d.bin: has 10 bytes, but d.idx needs exactly 8 (4 tokens of 2 bytes)"},
        Broken{"pointer", [](auto& i) { i.pointers[1] = 1 << 20; },
               "pointer of sequence 1 is 1048576, but the sequences before it end at byte 6"},
        Broken{"negative_pointer", [](auto& i) { i.pointers[0] = -6; }, "pointer of sequence 0 is -6"},
        Broken{"many_sequences", [](auto& i) { i.sequence_count = ~0ull; },
               "has 82 bytes, too few for 18446744073709551615 sequences and 3 document indices"},
        Broken{"one_sequence_more", [](auto& i) { i.sequence_count = 3; },
               "has 82 bytes, expected 94 for 3 sequences and 3 document indices"},
        Broken{"many_documents", [](auto& i) { i.document_count = 1ull << 61; },
               "2305843009213693952 document indices"},
        Broken{"first_document", [](auto& i) { i.documents[0] = 1; }, "document index 0 is 1: it must be 0"},
        Broken{"falling", [](auto& i) { i.documents[1] = 5; }, "document index 2 is 2, after 5: it must not fall"},
        Broken{"last_document", [](auto& i) { i.documents[2] = 1; },
               "the last of 3 document indices is 1, but there are 2 sequences"},
        Broken{"no_document", [](auto& i) { i.documents.clear(), i.document_count = 0; },
               "the last of 0 document indices is 0, but there are 2 sequences"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TokenFile, RefusesFilesThatWereCutOff) {
  const TempFolder folder;
  write_tokens<std::uint16_t>(folder / "d", 8, {1, 2, 3});
  const std::string index = read_file(folder / "d.idx");
  for (std::size_t length = 0; length < index.size(); ++length) {
    write_file(folder / "d.idx", index.substr(0, length));
    EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.idx: has " + std::to_string(length) + " bytes")) << length;
  }
  write_file(folder / "d.idx", index + "xy");
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.idx: has 64 bytes, expected 62 for 1 sequence"));
  write_file(folder / "d.idx", index);
  for (const std::size_t length : {0, 1, 5}) {
    write_file(folder / "d.bin", std::string(length, '\0'));
    EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.bin: has " + std::to_string(length) + " bytes"));
  }
}

/// Another process may truncate a file while a run reads samples.
TEST(TokenFile, AFileThatIsCutOffWhileItIsOpenIsAnError) {
  const TempFolder folder;
  write_tokens(folder / "d", 8, std::vector<std::uint16_t>(40'000, 3)); // many pages
  const TokenFile file(folder / "d");
  std::filesystem::resize_file(folder / "d.bin", 10'000);
  std::vector<std::int32_t> sample(100);
  file.read(4'900, sample); // the remaining part is readable
  EXPECT_EQ(sample.back(), 3);
  EXPECT_EQ(error_of([&] { file.read(4'950, sample); }),
            (folder / "d.bin").string() +
                ": has 10000 bytes, but had 80000 when it was opened: bytes 9900 to 10100 are missing\n"
                "  the file was truncated while in use: restore it, then start again");
  EXPECT_THAT(error_of([&] { file.read(30'000, sample); }), HasSubstr("bytes 60000 to 60200 are missing"));
  EXPECT_THAT(error_of([&] { file.largest(); }), HasSubstr("d.bin: has 10000 bytes, but had 80000"));
  EXPECT_THAT(error_of([&] { file.scan(257); }), HasSubstr("d.bin: has 10000 bytes, but had 80000"));
}

TEST(TokenFile, ReadsAnIndexOfManyBlocks) {
  const TempFolder folder;
  constexpr int kDocuments = 50'000;
  std::vector<std::int64_t> documents(kDocuments + 1);
  std::iota(documents.begin(), documents.end(), 0);
  MegatronIndex index(8, 2, std::vector<std::int32_t>(kDocuments, 1), documents);
  write_file(folder / "d.bin", raw_bytes(std::vector<std::uint16_t>(kDocuments, 3)));
  write_file(folder / "d.idx", index.bytes());
  EXPECT_EQ(TokenFile(folder / "d").tokens(), kDocuments);
  index.pointers[40'000] = 7;
  write_file(folder / "d.idx", index.bytes());
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("pointer of sequence 40000 is 7"));
}

TEST(TokenFile, RefusesMultimodalDatasetsAsSuch) {
  const TempFolder folder;
  write_file(folder / "d.bin", std::string(4, '\0'));
  write_file(folder / "d.idx", MegatronIndex(8, 2, {1, 1}, {0, 2}).bytes() + std::string(2, '\1'));
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("has a mode for each of its 2 sequences: a multimodal dataset"));
}

TEST(TokenFile, SaysWhichFileIsMissingAndHowToMakeIt) {
  const TempFolder folder;
  EXPECT_EQ(refusal_of(folder / "d"), (folder / "d.idx").string() +
                                          ": does not exist\n"
                                          "  prepare it with: triax data prepare --input FILE... --output " +
                                          (folder / "d").string() + " --tokenizer byte");
  write_tokens<std::uint16_t>(folder / "d", 8, {1, 2, 3});
  std::filesystem::remove(folder / "d.bin");
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.bin: does not exist"));
  std::filesystem::create_directory(folder / "d.bin");
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.bin: is a folder, not a regular file"));
  std::filesystem::remove(folder / "d.bin");
  ASSERT_EQ(::mkfifo((folder / "d.bin").c_str(), 0600), 0); // opening it must not wait for a writer
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.bin: is a FIFO, not a regular file"));
  std::filesystem::remove(folder / "d.idx");
  std::filesystem::create_symlink("d.idx", folder / "d.idx");
  EXPECT_THAT(refusal_of(folder / "d"), HasSubstr("d.idx: cannot be opened: Too many levels of symbolic links"));
}

} // namespace
} // namespace triax::data
