// SPDX-License-Identifier: Apache-2.0
// Files without a name, and what their file system can have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "os/scratch_file.hpp"
#include "support/error_of.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_folder.hpp"

namespace triax::os {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ScratchFile, BeginsWithZerosAndHasNoName) {
  const test::TempFolder folder;
  const ScratchFile file(folder.path(), "state", 10000, "choose another");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  std::vector<std::byte> content(10000, std::byte{1}), part(100, std::byte{7});
  file.read(0, content);
  EXPECT_EQ(std::ranges::count(content, std::byte{0}), 10000);
  file.write(4000, part);
  file.read(0, content);
  EXPECT_EQ(std::ranges::count(content, std::byte{7}), 100);
  EXPECT_EQ(std::memcmp(content.data() + 4000, part.data(), part.size()), 0);
}

TEST(ScratchFile, NamesThePlaceOfAnError) {
  const test::TempFolder folder;
  const ScratchFile file(folder.path(), "state", 100, "choose another");
  std::vector<std::byte> content(60);
  EXPECT_THAT(test::error_of([&] { file.read(80, content); }),
              AllOf(HasSubstr("state."), HasSubstr(", byte 100"), HasSubstr("the file has ended"), HasSubstr("dmesg"),
                    Not(HasSubstr("choose another"))));
  const test::FileSizeLimit limit(120);
  EXPECT_THAT(test::error_of([&] { file.write(80, content); }),
              AllOf(HasSubstr(", byte 120"), HasSubstr("cannot be written: File too large"), HasSubstr("ulimit -f")));
  EXPECT_THAT(test::error_of([&] { const ScratchFile large(folder.path(), "large", 1000, "choose another"); }),
              AllOf(HasSubstr("large."), HasSubstr("cannot have 1000 bytes: File too large")));
  EXPECT_THAT(test::error_of([&] { const ScratchFile lost(folder / "missing", "state", 1, "choose another"); }),
              AllOf(HasSubstr("missing/state"), HasSubstr("cannot be created"), HasSubstr("choose another")));
}

TEST(FileSystem, IsThatOfTheNearestFolder) {
  const test::TempFolder folder;
  EXPECT_GT(free_bytes(folder.path()), 0u);
  EXPECT_GT(free_bytes(folder / "missing/below"), 0u);
  EXPECT_FALSE(is_in_memory("/proc/missing"));
}

TEST(FileSystem, InMemoryIsKnown) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "there is no /dev/shm";
  EXPECT_TRUE(is_in_memory("/dev/shm/missing"));
}

} // namespace
} // namespace triax::os
