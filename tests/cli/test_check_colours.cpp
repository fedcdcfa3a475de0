// SPDX-License-Identifier: Apache-2.0
// triax check on a terminal marks values that the file sets; elsewhere its output has no colours.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A terminal with a reader thread: a writer blocks when a terminal's buffer is full.
class ReadTerminal {
 public:
  ReadTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    const char* name = ::ptsname(master_);
    slave_ = name ? ::open(name, O_RDWR | O_NOCTTY) : -1; // without a writer, reading would end at once
    if (slave_ < 0) return;
    name_ = name;
    reader_ = std::thread([this] {
      char buffer[4096];
      for (ssize_t got = 0; (got = ::read(master_, buffer, sizeof buffer)) > 0;)
        text_.append(buffer, static_cast<std::size_t>(got));
    });
  }
  ~ReadTerminal() {
    finish();
    if (master_ >= 0) ::close(master_);
  }
  const std::string& name() const { return name_; }
  /// All that was written to the terminal.
  std::string finish() {
    if (slave_ >= 0) ::close(slave_);
    slave_ = -1;
    if (reader_.joinable()) reader_.join();
    return text_;
  }

 private:
  int master_, slave_ = -1;
  std::string name_, text_;
  std::thread reader_;
};

TEST(CheckColours, ATerminalHasThemUnlessAskedNotTo) {
  const TempFolder work;
  write_file(work / "base.toml", read_file(TRIAX_SOURCE_DIR "/tests/cli/base.toml"));
  write_file(work / "text.txt", std::string(1000, 'x'));
  ASSERT_EQ(run(work.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1").status, 0);
  const auto shown = [&work](const char* environment) {
    ReadTerminal terminal;
    if (terminal.name().empty()) return std::string();
    const std::string command = "cd '" + work.path().string() + "' && env -u TRIAX_PLUGIN_PATH " + environment +
                                " '" TRIAX_BINARY_DIR "/bin/triax' check base.toml >" + terminal.name();
    EXPECT_EQ(std::system(command.c_str()), 0); // NOLINT(cert-env33-c): the command is from this test
    return terminal.finish();
  };
  const std::string coloured = shown("-u NO_COLOR TERM=xterm");
  if (coloured.empty()) GTEST_SKIP() << "this system has no pseudo-terminals";
  EXPECT_THAT(coloured, HasSubstr("\x1b[1m[model]\x1b[0m"));
  EXPECT_THAT(coloured, HasSubstr("\x1b[2m  split "));                 // a default
  EXPECT_THAT(coloured, HasSubstr("\r\n  heads "));                    // set in the file
  EXPECT_THAT(coloured, HasSubstr("\x1b[2m  # base.toml:5:9\x1b[0m")); // its origin
  EXPECT_THAT(shown("NO_COLOR=1 TERM=xterm"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown("-u NO_COLOR TERM=dumb"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(run(work.path(), "check base.toml", "2>&1").text, Not(HasSubstr("\x1b")));
}

} // namespace
} // namespace triax::test
