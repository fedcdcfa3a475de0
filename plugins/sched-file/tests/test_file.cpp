// SPDX-License-Identifier: Apache-2.0
// sched-file, loaded as a plugin, with valid and invalid files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/error_of.hpp"
#include "support/loaded_scheduler.hpp"
#include "support/temp_folder.hpp"

namespace {
using namespace triax;
using test::row_texts;
using ::testing::ElementsAre;

class File : public ::testing::Test {
 protected:
  test::LoadedScheduler holding(const std::string& csv) {
    test::write_file(file_, csv);
    return test::LoadedScheduler("sched-file", {{"file", file_}});
  }
  std::string path() const { return file_.string(); }

  test::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "rows.csv";
};

TEST_F(File, HasTheRowsOfTheFile) {
  const auto scheduler = holding("0F0,3F0,,3B0,0B0\r\n,1F0,2F0,2I0,1B0,2W0\r\n");
  ASSERT_TRUE(scheduler->supports({2, 2, 1}).empty());
  const Schedule schedule = scheduler->rows({2, 2, 1});
  EXPECT_THAT(row_texts(schedule), ElementsAre("0F0 3F0 3B0 0B0", "1F0 2F0 2I0 1B0 2W0"));
  EXPECT_EQ(schedule.stage_rank(), (std::vector<std::vector<int>>{{0, 1, 1, 0}}));
}

TEST_F(File, RefusesAFileOfAnotherShape) {
  const auto scheduler = holding("0F0,0B0\n1F0,1B0\n");
  const Refusals rank = scheduler->supports({4, 1, 1}), all = scheduler->supports({1, 2, 3});
  EXPECT_EQ(rank.front().message,
            "schedule.file: " + path() +
                " has another shape than the run: p = 2 in the file, parallel.pipeline = 4 in the run");
  EXPECT_EQ(rank.front().hint, "set parallel.pipeline = 2, or name another file");
  EXPECT_EQ(all.front().message,
            "schedule.file: " + path() +
                " has another shape than the run: p = 2 in the file, parallel.pipeline = 1 in the run; v = 1 in the "
                "file, parallel.chunks = 2 in the run; m = 1 in the file, batch.global / (parallel.data x batch.micro) "
                "= 3 in the run");
  EXPECT_EQ(all.front().hint,
            "set parallel.pipeline = 2, parallel.chunks = 1, batch.global = 1 x parallel.data x batch.micro, or name "
            "another file");
}

/// Without waiting for data: a run reads the file several times.
TEST_F(File, RefusesAFifoAndADevice) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const auto reason = [](const std::filesystem::path& file) {
    return test::LoadedScheduler("sched-file", {{"file", file}})->supports({2, 1, 1}).front().message;
  };
  EXPECT_EQ(reason(file_), "schedule.file: " + path() + " is a pipe or a device, but each rank reads the file");
  EXPECT_EQ(reason("/dev/zero"), "schedule.file: /dev/zero is a pipe or a device, but each rank reads the file");
}

TEST_F(File, RefusesAHugeFile) {
  const auto scheduler = holding("0F0,0B0\n");
  std::filesystem::resize_file(file_, std::uintmax_t{1} << 40); // sparse
  EXPECT_THAT(scheduler->supports({2, 1, 1}).front().message,
              ::testing::HasSubstr("is larger than 64 MiB, the limit of a CSV text"));
}

TEST_F(File, RefusesFilesThatAreNotSchedules) {
  const auto reason = [this](const std::string& csv) { return holding(csv)->supports({2, 1, 1}).front().message; };
  EXPECT_EQ(reason("0F0,0B0\n1F0,1G0,x\n"),
            "schedule.file: " + path() +
                ":2:2: \"1G0\" has kind G; a schedule file has only F, B, I and W (Triax adds the transfers and the "
                "end of the step) (and 1 more)");
  EXPECT_THAT(reason("0F0,0SEND_F0,0B0\n1F0,1B0\n"), ::testing::HasSubstr(":1:2: \"0SEND_F0\" has kind SEND_F"));
  EXPECT_EQ(reason(""), "schedule.file: " + path() + ": has no action");
  std::filesystem::remove(file_);
  const Refusals missing = test::LoadedScheduler("sched-file", {{"file", file_}})->supports({2, 1, 1});
  EXPECT_EQ(missing.front().message, "schedule.file: " + path() + ": does not exist");
  EXPECT_EQ(missing.front().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.front().hint, "name a CSV file of a schedule");
}

TEST_F(File, AFileThatHasChangedSinceIsAnError) {
  const auto scheduler = holding("0F0,0B0\n1F0,1B0\n");
  ASSERT_TRUE(scheduler->supports({2, 1, 1}).empty());
  test::write_file(file_, "0F0,0B0\n");
  EXPECT_THAT(triax::test::error_of([&] {
                scheduler->rows({2, 1, 1});
              }),
              ::testing::HasSubstr("p = 1 in the file, parallel.pipeline = 2 in the run"));
}

} // namespace
