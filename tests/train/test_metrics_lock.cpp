// SPDX-License-Identifier: Apache-2.0
// The lock of a metrics file, in a folder that is moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "support/error_of.hpp"
#include "train/metrics_lock.hpp"
#include "train/run_folder_fixture.hpp"

namespace triax::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_file;
using test::write_file;
using ::testing::HasSubstr;

using MetricsLockTest = RunFolderTest;

TEST_F(MetricsLockTest, ALockOfMetricsIsRemovedFromTheFolderThatWasMoved) {
  fs::create_directories(run_.folder);
  {
    const MetricsLock lock(run_.folder / "metrics.jsonl");
    fs::rename(run_.folder, folder_ / "moved");
    fs::create_directories(run_.folder);
    std::optional<MetricsLock> another(run_.folder / "metrics.jsonl");
    EXPECT_THAT(error_of([&] { MetricsLock(folder_ / "moved/metrics.jsonl"); }), HasSubstr("another run is writing"));
    EXPECT_TRUE(fs::exists(folder_ / "moved/metrics.jsonl.lock"));
    another.reset();
    write_file(run_.folder / "metrics.jsonl.lock", "of a third run");
  }
  EXPECT_FALSE(fs::exists(folder_ / "moved/metrics.jsonl.lock"));
  EXPECT_EQ(read_file(run_.folder / "metrics.jsonl.lock"), "of a third run") << "not the file that was locked";
}

} // namespace
} // namespace triax::train
