// SPDX-License-Identifier: Apache-2.0
// Files that grow by whole lines, and files that are replaced as a whole: full disks, size limits, files deleted or
// moved in the meantime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/append_file.hpp"
#include "os/replace_file.hpp"
#include "support/error_of.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_folder.hpp"

namespace triax::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using triax::test::error_of;
using triax::test::FileSizeLimit;
using triax::test::read_file;
using triax::test::TempFolder;
using triax::test::write_file;

class AppendFileTest : public ::testing::Test {
 protected:
  os::AppendFile open(const fs::path& file) {
    return {file, [this](const Error& problem, bool lost) { (lost ? lost_ : moved_).emplace_back(problem.what()); }};
  }
  TempFolder folder_;
  std::vector<std::string> lost_, moved_;
};

TEST_F(AppendFileTest, ContinuesAFileAndNeverTruncatesIt) {
  write_file(folder_ / "m", "earlier\n");
  os::AppendFile file = open(folder_ / "m");
  EXPECT_EQ(read_file(folder_ / "m"), "earlier\n");
  EXPECT_TRUE(file.append("one", "a line"));
  EXPECT_EQ(read_file(folder_ / "m"), "earlier\none\n");
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(AppendFileTest, APartOfALineIsRemovedAndALaterLineContinuesTheFile) {
  os::AppendFile file = open(folder_ / "m");
  EXPECT_TRUE(file.append("first", "the record of step 1"));
  {
    const FileSizeLimit limit(10); // six bytes exist, so four bytes of the next line fit
    EXPECT_FALSE(file.append("second", "the record of step 2"));
    EXPECT_FALSE(file.append("third", "the record of step 3"));
  }
  EXPECT_EQ(read_file(folder_ / "m"), "first\n");
  EXPECT_TRUE(file.append("fourth", "the record of step 4"));
  EXPECT_EQ(read_file(folder_ / "m"), "first\nfourth\n");
  EXPECT_EQ(file.lost_lines(), 2);
  EXPECT_THAT(lost_, ElementsAre((folder_ / "m").string() +
                                 ": the record of step 2 cannot be written: File too large\n  raise the limit of a "
                                 "file's size (ulimit -f) before the next run; the run continues"));
}

TEST_F(AppendFileTest, RefusesAFifoWithoutAReaderAndDoesNotBlock) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "log").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { const os::AppendFile file(folder / "log", [](const Error&, bool) {}); }),
              HasSubstr("it is a FIFO that no process reads"));
}

TEST_F(AppendFileTest, AFullDiskIsReportedOnceAndEachLineCounted) {
  os::AppendFile file = open("/dev/full");
  for (int step = 0; step < 3; ++step) EXPECT_FALSE(file.append("line", "a line"));
  EXPECT_EQ(file.lost_lines(), 3);
  EXPECT_THAT(lost_, ElementsAre("/dev/full: a line cannot be written: No space left on device\n"
                                 "  free space there: the run continues, and writes later lines as soon as it can"));
}

TEST_F(AppendFileTest, ADeletedFileIsReportedAtOnceAndCreatedAgain) {
  os::AppendFile file = open(folder_ / "m");
  file.append("one", "a line");
  file.append("two", "a line");
  fs::remove(folder_ / "m");
  file.check();
  EXPECT_THAT(lost_, ElementsAre((folder_ / "m").string() +
                                 ": was deleted during the run; 2 lines of this run are lost\n"
                                 "  the run continues, and writes later lines to a new file of this name"));
  EXPECT_TRUE(file.append("three", "a line"));
  EXPECT_EQ(read_file(folder_ / "m"), "three\n");
  EXPECT_EQ(file.deleted_lines(), 2);
  EXPECT_EQ(file.lost_lines(), 0);
}

TEST_F(AppendFileTest, ReportsATruncatedFileOnce) {
  os::AppendFile file = open(folder_ / "m");
  file.append("one", "a line");
  file.append("two", "a line");
  file.check();
  EXPECT_THAT(lost_, ElementsAre());
  fs::resize_file(folder_ / "m", 4);
  EXPECT_TRUE(file.append("three", "a line"));
  EXPECT_TRUE(file.append("four", "a line"));
  EXPECT_THAT(lost_,
              ElementsAre((folder_ / "m").string() + ": was truncated during the run; up to 2 lines of this run are "
                                                     "lost\n  the run continues, and appends later lines to it"));
  EXPECT_EQ(read_file(folder_ / "m"), "one\nthree\nfour\n");
  EXPECT_EQ(file.deleted_lines(), 2);
  EXPECT_EQ(file.lost_lines(), 0);
}

TEST_F(AppendFileTest, LinesAfterTheFolderWasDeletedAreLostUntilItIsThereAgain) {
  fs::create_directory(folder_ / "run");
  os::AppendFile file = open(folder_ / "run/m");
  file.append("one", "a line");
  fs::remove_all(folder_ / "run");
  EXPECT_FALSE(file.append("two", "a line"));
  EXPECT_FALSE(file.append("three", "a line"));
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("1 line of this run is lost\n  create its folder again: ")));
  fs::create_directory(folder_ / "run");
  EXPECT_TRUE(file.append("four", "a line"));
  EXPECT_EQ(read_file(folder_ / "run/m"), "four\n");
  EXPECT_EQ(file.deleted_lines(), 1);
  EXPECT_EQ(file.lost_lines(), 2);
}

TEST_F(AppendFileTest, ADeletedFileIsNotCreatedOverAnother) {
  os::AppendFile file = open(folder_ / "m");
  fs::remove(folder_ / "m");
  write_file(folder_ / "m", "of another run\n");
  EXPECT_FALSE(file.append("one", "a line"));
  EXPECT_EQ(read_file(folder_ / "m"), "of another run\n");
  EXPECT_THAT(lost_, ElementsAre(HasSubstr("another file has its name now")));
}

TEST_F(AppendFileTest, AMovedFileIsReportedAndGetsItsLines) {
  fs::create_directory(folder_ / "run");
  os::AppendFile file = open(folder_ / "run/m");
  file.append("one", "a line");
  fs::rename(folder_ / "run", folder_ / "elsewhere");
  file.check();
  EXPECT_TRUE(file.append("two", "a line"));
  EXPECT_EQ(read_file(folder_ / "elsewhere/m"), "one\ntwo\n");
  EXPECT_EQ(file.path(), fs::canonical(folder_.path()) / "elsewhere/m");
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_THAT(moved_, ElementsAre(HasSubstr("run/m: was moved to ")));
  EXPECT_EQ(file.lost_lines() + file.deleted_lines(), 0);
}

TEST_F(AppendFileTest, AFileThatCannotBeOpenedIsNamed) {
  EXPECT_EQ(error_of([&] { open(folder_ / "no/m"); }),
            (folder_ / "no/m").string() + ": cannot be opened: No such file or directory");
}

TEST_F(AppendFileTest, AReplacedFileIsWholeOrAsItWas) {
  write_file(folder_ / "f", "former");
  {
    const FileSizeLimit limit(3);
    EXPECT_THAT(error_of([&] { os::replace_file(folder_ / "f", "the new content"); }),
                HasSubstr("/f: cannot be written: File too large"));
  }
  EXPECT_EQ(read_file(folder_ / "f"), "former");
  EXPECT_FALSE(fs::exists(os::temporary_name(folder_ / "f")));
  os::replace_file(folder_ / "f", "the new content");
  EXPECT_EQ(read_file(folder_ / "f"), "the new content");
  EXPECT_FALSE(fs::exists(os::temporary_name(folder_ / "f")));
}

} // namespace
} // namespace triax::report
