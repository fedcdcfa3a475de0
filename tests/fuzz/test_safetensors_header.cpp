// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files with random changes are accepted, or refused with a message. Useful mainly under
// sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "changed_bytes.hpp"
#include "checkpoint/safetensors.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {
namespace {

std::string with_length(const std::string& json) {
  const std::uint64_t length = json.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + json;
}

/// It has a tensor of a type that Triax lacks.
const std::string& good_file() {
  static const std::string file = [] {
    std::vector<TensorEntry> entries = {{"block 0/w", DType::f32, {2, 3}, 0},
                                        {"block 0/b", DType::bf16, {4}, 0},
                                        {"none", DType::f64, {0, 7}, 0},
                                        {"one", DType::i64, {}, 0}};
    const std::vector<std::pair<std::string, std::string>> metadata = {{"step", "7"}};
    std::string json = make_header(entries, metadata).substr(sizeof(std::uint64_t));
    json.replace(json.find("I64"), 3, "C64");
    return with_length(json) + std::string(24 + 8 + 8, 'x');
  }();
  return file;
}

/// True if the file was accepted; then its tensors fill it.
bool header_accepted(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(path); // file systems write a file that is truncated to the disk at once
  test::write_file(path, bytes);
  try {
    const SafetensorsHeader header = read_header(os::InputFile(path), path);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges; // begin and bytes
    for (const TensorEntry& entry : header.entries) ranges.emplace_back(entry.begin, entry.bytes());
    for (const ForeignTensor& other : header.others) ranges.emplace_back(other.begin, other.bytes);
    std::ranges::sort(ranges);
    std::uint64_t end = 0;
    for (const auto& [begin, size] : ranges) {
      EXPECT_EQ(begin, end);
      end += size;
    }
    EXPECT_EQ(header.bytes + end, bytes.size());
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return false;
  }
}

TEST(Fuzz, ReadsOrRefusesChangedSafetensorsHeaders) {
  const test::TempFolder folder;
  std::mt19937_64 random(31);
  int accepted = 0;
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = good_file();
    test::change_some(bytes, random);
    accepted += header_accepted(folder / "x.safetensors", bytes);
    if (HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(accepted, 0); // some changes are in names, metadata or data
  EXPECT_LT(accepted, kRounds / 2);
}

/// A change of the length of the JSON would hide what else is wrong: it is made to fit.
TEST(Fuzz, ReadsOrRefusesChangedTextsOfSafetensorsHeaders) {
  const test::TempFolder folder;
  std::mt19937_64 random(32);
  const std::string json = good_file().substr(8, good_file().size() - 8 - 40);
  int accepted = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string changed = json;
    test::change_json(changed, random);
    accepted += header_accepted(folder / "x.safetensors", with_length(changed) + std::string(40, 'x'));
    if (HasFailure()) FAIL() << "round " << round << ": " << changed;
  }
  EXPECT_GT(accepted, 0);
}

TEST(Fuzz, RefusesNoiseAsASafetensorsHeader) {
  const test::TempFolder folder;
  std::mt19937_64 random(33);
  for (int round = 0; round < 2'000; ++round) {
    std::string noise(random() % 200, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    if (round % 2 && noise.size() > 9) noise.replace(0, 9, std::string("\x20\0\0\0\0\0\0\0{", 9));
    EXPECT_FALSE(header_accepted(folder / "x.safetensors", noise)) << "round " << round;
  }
}

} // namespace
} // namespace triax::checkpoint
