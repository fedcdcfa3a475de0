// SPDX-License-Identifier: Apache-2.0
// Files that are written to the disk while more of them arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "os/durable_file.hpp"
#include "os/input_file.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::os {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Parts of all sizes, which begin and end inside of pages and of what is written to the disk at once.
TEST(DurableFile, HasTheBytesOfAllParts) {
  const test::TempFolder folder;
  std::vector<std::byte> content(26 * kMiB + 7), read(content.size());
  for (std::size_t i = 0; i < content.size(); i += 97) content[i] = static_cast<std::byte>(i / 97);
  for (const std::size_t part : {std::size_t{70001}, 5 * kMiB + 1, 17 * kMiB + 4095, 40 * kMiB}) {
    const std::filesystem::path path = folder / std::to_string(part);
    DurableFile file(path);
    for (std::size_t at = 0; at < content.size(); at += part)
      file.write(std::span(content).subspan(at, std::min(part, content.size() - at)));
    file.finish();
    const InputFile written(path);
    ASSERT_EQ(written.bytes(), content.size());
    written.read_at(0, read);
    EXPECT_EQ(std::memcmp(read.data(), content.data(), content.size()), 0) << part;
  }
}

/// Reserved space does not change the file, except that a file system without as much space refuses it at once.
TEST(DurableFile, FindsAFullDiskBeforeItWrites) {
  const test::TempFolder folder;
  {
    DurableFile file(folder / "file");
    file.reserve(3 * kMiB);
    const std::vector<std::byte> content(3 * kMiB, std::byte{7});
    file.write(content);
    file.finish();
    EXPECT_EQ(InputFile(folder / "file").bytes(), content.size());
  }
  DurableFile huge(folder / "huge");
  const std::string error = test::error_of([&] { huge.reserve(std::uint64_t{1} << 62); });
  EXPECT_THAT(error, ::testing::HasSubstr("cannot be written: "));
}

/// What another process writes has a lock, which the kernel removes with its process.
TEST(StagedFile, RemovesWhatKilledProcessesHaveLeft) {
  const test::TempFolder folder;
  const std::filesystem::path file = folder / "x";
  test::write_file(folder / ".x.partial-4711", "left");
  std::filesystem::create_directories(folder / ".x.partial-4712" / "inner");
  test::write_file(folder / ".xy.partial-4711", "another's");
  test::write_file(folder / ".x.partial-4713", "written");
  const Descriptor lock = lock_partial(folder / ".x.partial-4713");
  ASSERT_TRUE(lock);
  StagedFile staged(file, "");
  StagedFile second(file, ""); // of this process, at the same time
  EXPECT_FALSE(std::filesystem::exists(folder / ".x.partial-4711"));
  EXPECT_FALSE(std::filesystem::exists(folder / ".x.partial-4712"));
  EXPECT_TRUE(std::filesystem::exists(folder / ".xy.partial-4711"));
  EXPECT_TRUE(std::filesystem::exists(folder / ".x.partial-4713"));
  staged.commit(false);
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(DurableFile, DoesNotReplaceAFile) {
  const test::TempFolder folder;
  write_durable_file(folder / "file", "first");
  EXPECT_NE(test::error_of([&] { write_durable_file(folder / "file", "second"); }), "no error");
  EXPECT_EQ(test::read_file(folder / "file"), "first");
}

} // namespace
} // namespace triax::os
