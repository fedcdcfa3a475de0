// SPDX-License-Identifier: Apache-2.0
// Token and tokenizer files with random changes are accepted, or refused with a message. Useful mainly under
// sanitizers.
#include <gtest/gtest.h>

#include <random>

#include "changed_bytes.hpp"
#include "data/dataset.hpp"
#include "data/megatron_files.hpp"
#include "data/token_index.hpp"
#include "triax/error.hpp"

namespace triax::data {
namespace {

using namespace triax::test;

/// Parses only the index, in a block of exactly its size, so that sanitizers detect any read beyond it.
bool index_accepted(const std::string& index, std::uint64_t bin_bytes) {
  const std::vector<std::byte> exact(reinterpret_cast<const std::byte*>(index.data()),
                                     reinterpret_cast<const std::byte*>(index.data()) + index.size());
  const auto read_at = [&exact](std::uint64_t offset, std::span<std::byte> out) {
    ASSERT_TRUE(offset <= exact.size() && out.size() <= exact.size() - offset) << offset << " + " << out.size();
    std::copy_n(exact.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  };
  try {
    const TokenIndex read = read_token_index("d.idx", exact.size(), read_at, "d.bin", bin_bytes);
    EXPECT_EQ(static_cast<std::uint64_t>(read.tokens) * bytes_of(read.type), bin_bytes);
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

/// Reads the whole content; true if the files were accepted.
bool files_accepted(const std::filesystem::path& prefix) {
  try {
    const TokenFile file(prefix);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.tokens()));
    file.read(0, tokens);
    file.scan(100);
    if (file.tokens() > 0) file.largest();
    const Dataset dataset(prefix, 2, 100, 1);
    std::vector<std::int32_t> memory(4);
    const std::vector<std::int64_t> samples = {12345};
    dataset.microbatch(samples, {memory.data(), DType::i32, {2, 1}}, {memory.data() + 2, DType::i32, {2, 1}});
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

const std::string& good_index() {
  static const std::string index = MegatronIndex(8, 2, {3, 0, 4, 1}, {0, 2, 3, 4}).bytes();
  return index;
}

TEST(Fuzz, ReadsOrRefusesChangedIndices) {
  std::mt19937_64 random(20240229);
  int accepted = 0;
  constexpr int kRounds = 50'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string index = good_index();
    change_some(index, random);
    accepted += index_accepted(index, 16);
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(accepted, 0);            // some changes cancel out, or affect documents only
  EXPECT_LT(accepted, kRounds / 10); // nearly all are detected
}

TEST(Fuzz, RefusesNoiseAsAnIndex) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string noise(random() % 200, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    if (round % 2) noise.replace(0, 18, std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08", 18));
    EXPECT_FALSE(index_accepted(noise, noise.size())) << "round " << round;
  }
}

TEST(Fuzz, ReadsOrRefusesChangedTokenFiles) {
  const TempFolder folder;
  const std::string tokens = raw_bytes<std::uint16_t>({1, 2, 3, 4, 5, 6, 7, 8});
  std::mt19937_64 random(3);
  int accepted = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::string changed_index = good_index();
    std::string changed_tokens = tokens;
    change_some(round % 2 ? changed_index : changed_tokens, random);
    write_file(folder / "d.idx", changed_index);
    write_file(folder / "d.bin", changed_tokens);
    accepted += files_accepted(folder / "d");
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(accepted, 0); // some changes give other ids of the vocabulary
  EXPECT_LT(accepted, kRounds);
}

TEST(Fuzz, ReadsOrRefusesChangedTokenizerFiles) {
  const TempFolder folder;
  const std::string good = R"({"tokenizer":"byte","vocab":257,"end_of_document":256})";
  std::mt19937_64 random(11);
  int accepted = 0;
  for (int round = 0; round < 200; ++round) {
    std::string bytes = good;
    change(bytes, random);
    write_file(folder / "d.json", bytes);
    try {
      const TokenizerInfo info = read_tokenizer_info(folder / "d");
      EXPECT_GE(info.vocab, 1);
      ++accepted;
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
    }
  }
  EXPECT_GT(accepted, 0);
}

} // namespace
} // namespace triax::data
