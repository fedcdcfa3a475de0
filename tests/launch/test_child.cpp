// SPDX-License-Identifier: Apache-2.0
// Child processes: the test program starts itself, with a filter that selects one of the bodies below.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "os/child_process.hpp"
#include "os/named_memory.hpp"
#include "triax/text.hpp"

namespace triax::launch {
namespace {

using ::testing::ElementsAre;

constexpr const char* kWhich = "TRIAX_TEST_CHILD";

/// Waits for the end of the child, and returns its lines without GoogleTest's output.
std::vector<std::string> run(os::Child& child) {
  std::vector<std::string> out;
  while (!child.ended() || child.output() >= 0) {
    for (const std::string& line : child.lines())
      if (line.starts_with("child: ") || line.ends_with("no newline")) out.push_back(line);
    ::usleep(1000);
  }
  return out;
}

os::Child child_that(const std::string& what) {
  return {{"--gtest_filter=ChildBody.*", "--gtest_also_run_disabled_tests"},
          {{kWhich, what}, {"TRIAX_TEST_VALUE", "a value=with signs"}}};
}

/// Disabled because it is not a test, but the body of the child processes of the tests below.
TEST(ChildBody, DISABLED_RunsTheGivenBody) {
  const char* which = std::getenv(kWhich);
  ASSERT_TRUE(which);
  const std::string what = which;
  std::cout << "child: " << std::getenv("TRIAX_TEST_VALUE") << std::endl;
  if (what == "talk") {
    std::cerr << "child: on stderr" << std::endl;
    std::cout << "child: input ends: " << (std::getchar() == EOF) << std::endl;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    std::cout << "child: signals blocked: " << sigismember(&blocked, SIGTERM) << std::endl;
    std::cout << "no newline" << std::flush;
  }
  if (what == "sleep") ::pause();
  if (what == "orphan") { // a grandchild that must end with this process
    const os::Child own({"--gtest_filter=ChildBody.*", "--gtest_also_run_disabled_tests"},
                        {{kWhich, "die with parent"}});
    std::cout << "child: has " << own.pid() << std::endl;
    ::usleep(200'000);
    ::kill(::getpid(), SIGKILL);
  }
  if (what == "die with parent") {
    os::end_with_parent(::getppid());
    ::pause();
  }
  if (what == "no parent") os::end_with_parent(1);
  std::_Exit(what == "talk" ? 7 : 0);
}

TEST(Child, ItsOutputComesInWholeLines) {
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  os::Child child = child_that("talk");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(run(child), ElementsAre("child: a value=with signs", "child: on stderr", "child: input ends: 1",
                                      "child: signals blocked: 1", "no newline"));
  EXPECT_EQ(os::how_it_ended(child.status()), "ended with status 7");
}

TEST(Child, IsKilledWhenAsked) {
  os::Child child = child_that("sleep");
  while (child.lines().empty()) ::usleep(1000);
  EXPECT_FALSE(child.ended());
  child.kill();
  run(child);
  EXPECT_EQ(os::how_it_ended(child.status()), "killed by signal 9 (Killed)");
}

TEST(Child, DoesNotOutliveItsObject) {
  pid_t pid = 0;
  {
    const os::Child child = child_that("sleep");
    pid = child.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Child, EndsWithTheProcessThatStartedIt) {
  os::Child child = child_that("orphan");
  pid_t own = 0;
  for (const std::string& line : run(child))
    if (line.starts_with("child: has ")) own = std::atoi(line.c_str() + 11);
  ASSERT_GT(own, 0);
  EXPECT_EQ(os::how_it_ended(child.status()), "killed by signal 9 (Killed)");
  while (::kill(own, 0) == 0) ::usleep(1000);
}

TEST(Child, EndsAtOnceIfThatProcessHasGone) {
  os::Child child = child_that("no parent");
  run(child);
  EXPECT_EQ(os::how_it_ended(child.status()), "ended with status 1");
}

/// A file of the process that has no name any more, one with another prefix, and one that a killed process would leave.
TEST(NamedMemory, RemovesWhatAKilledProcessLeavesAndNothingElse) {
  const std::string own = text("triax-test-{}-", getpid());
  const std::filesystem::path folder = "/dev/shm", left = folder / (own + "left"), mapped = folder / (own + "mapped"),
                              gone = folder / (own + "gone"), other = folder / ("x-" + own);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const std::filesystem::path& file : {left, gone, other}) ::open(file.c_str(), O_CREAT | O_RDWR, 0600);
    const int file = ::open(mapped.c_str(), O_CREAT | O_RDWR, 0600);
    if (::ftruncate(file, 4096) != 0) ::_exit(1);
    ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    ::unlink(gone.c_str());
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  os::NamedMemory memory;
  memory.collect(std::array{child}, own);
  EXPECT_THAT(memory.files(), testing::UnorderedElementsAre(left, mapped));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::filesystem::remove(mapped); // by somebody else, who has made another file of that name
  const std::ofstream theirs(mapped);
  memory.remove();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(mapped));
  EXPECT_TRUE(std::filesystem::exists(other));
  for (const std::filesystem::path& file : {mapped, other}) std::filesystem::remove(file);
}

} // namespace
} // namespace triax::launch
