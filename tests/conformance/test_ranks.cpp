// SPDX-License-Identifier: Apache-2.0
// Ranks of checks, as threads and as processes: the first error is reported, no rank hangs, and a rank that is killed
// as planned is not a failure.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "support/loaded_communicator.hpp"
#include "support/temp_folder.hpp"
#include "triax/conformance/folder_store.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/conformance/run.hpp"

namespace {

using namespace triax;
using namespace triax::conformance;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> failures_of(const RankSetup& setup, int ranks, const std::function<void(Rank&)>& body) {
  Activities activities;
  Report report(activities);
  run_ranks(setup, ranks, report, body);
  return report.failures();
}

RankSetup processes() {
  RankSetup setup;
  setup.processes = true;
  setup.timeout_s = 20;
  return setup;
}

class Ranks : public ::testing::TestWithParam<bool> {
 protected:
  RankSetup setup() const { return GetParam() ? processes() : RankSetup(); }
};
INSTANTIATE_TEST_SUITE_P(As, Ranks, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Processes" : "Threads"; });

TEST_P(Ranks, ShareTheStore) {
  EXPECT_THAT(failures_of(setup(), 3,
                          [](Rank& rank) {
                            rank.store().set(text("from {}/%", rank.index()), text("hello {}", rank.index()));
                            for (int other = 0; other < 3; ++other)
                              rank.expect(rank.store().get(text("from {}/%", other), rank.deadline()) ==
                                              text("hello {}", other),
                                          "wrong value");
                            rank.barrier("here");
                            rank.store().add("counter", rank.index());
                            rank.barrier("there");
                            rank.expect(rank.store().add("counter", 0) == 3, "wrong count");
                          }),
              IsEmpty());
}

TEST_P(Ranks, ReportFailuresWithTheirNumber) {
  EXPECT_THAT(failures_of(setup(), 2, [](Rank& rank) { rank.expect(rank.index() == 0, "{} is odd", rank.index()); }),
              ElementsAre("rank 1: 1 is odd"));
}

TEST_P(Ranks, EndWithTheFirstError) {
  const auto failures = failures_of(setup(), 3, [](Rank& rank) {
    if (rank.index() == 2) throw Error("no space on the disk");
    HostEvent never;
    rank.device().wait(never.arm(), deadline_in(60));
  });
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures.front(), "rank 2: no space on the disk");
}

TEST(RankThreads, AreAbortedIfOneFailsInACollective) {
  RankSetup setup;
  setup.backend = test::loaded_communicator("comm-local", setup.options);
  const auto failures = failures_of(setup, 4, [](Rank& rank) {
    Communicator& comm = rank.join("tensor");
    const TensorView view = rank.tensor(DType::f32, {1000});
    for (int step = 0;; ++step) {
      if (rank.index() == 3 && step == 20) throw Error("no space on the disk");
      rank.wait(comm.all_reduce(view, view, Reduce::sum, rank.stream()));
    }
  });
  EXPECT_THAT(failures, ElementsAre("rank 3: no space on the disk"));
}

TEST(RankProcesses, ThatAreKilledAreReported) {
  EXPECT_THAT(failures_of(processes(), 2,
                          [](Rank& rank) {
                            if (rank.index() == 1) std::raise(SIGKILL);
                          }),
              ElementsAre("rank 1 was killed by SIGKILL (Killed)"));
}

TEST(RankProcesses, ThatDieAsPlannedAreNotAFailure) {
  EXPECT_THAT(failures_of(processes(), 2,
                          [](Rank& rank) {
                            if (rank.index() == 1) rank.kill_process();
                          }),
              IsEmpty());
}

TEST(RankProcesses, CanBeStartedAgain) {
  for (int repeat = 0; repeat < 3; ++repeat)
    EXPECT_THAT(failures_of(processes(), 2, [](Rank& rank) { rank.barrier("here"); }), IsEmpty());
}

TEST(FolderStore, KeepsKeysApartAndTimesOut) {
  const test::TempFolder folder;
  FolderStore store(folder.path());
  store.set("a/b", "1");
  store.set("a_b", "2");
  store.set("a%47.b", "3");
  EXPECT_EQ(store.get("a/b", deadline_in(1)), "1");
  EXPECT_EQ(store.get("a_b", deadline_in(1)), "2");
  EXPECT_EQ(store.add("a/b", 5), 5);
  EXPECT_EQ(store.add("a/b", -2), 3);
  EXPECT_EQ(store.get("a/b", deadline_in(1)), "1");
  EXPECT_THROW(store.get("missing", deadline_in(0.01)), Error);
}

TEST(FolderStore, ThreadsMaySetOneKeyAtOnce) {
  const test::TempFolder folder;
  FolderStore store(folder.path());
  const auto set = [&store](char letter) {
    for (int i = 0; i < 500; ++i) EXPECT_NO_THROW(store.set("key", std::string(1000, letter)));
  };
  std::thread other(set, 'b');
  set('a');
  other.join();
  const std::string value = store.get("key", deadline_in(1));
  EXPECT_EQ(value, std::string(1000, value.at(0))) << "a mixture of both";
}

/// Whether a rank has set "key" in a store below the folder: a folder that is renamed meanwhile counts as without.
bool has_key(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::filesystem::directory_iterator(folder),
                             [](const auto& entry) { return FolderStore(entry.path()).has("key"); });
}

/// The ranks are killed with it, and cannot remove their store.
TEST(Check, LeavesNoStoreIfItIsKilled) {
  const test::TempFolder folder;
  ASSERT_EQ(::setenv("TMPDIR", folder.path().c_str(), 1), 0);
  const Check check{"Some.Check", "C1", [] { return std::string(); },
                    [](Report& report) {
                      run_ranks(processes(), 2, report, [](Rank& rank) {
                        rank.store().set("key", "value");
                        for (;;) ::pause();
                      });
                    }};
  const Result result = run_check(check, {.is_stopped = [&folder] { return has_key(folder.path()); }});
  ::unsetenv("TMPDIR");
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

/// Returns in the parent only, with the process that runs a check whose ranks wait.
pid_t start_waiting_check() {
  const pid_t child = ::fork();
  if (child != 0) return child;
  failures_of(processes(), 2, [](Rank& rank) {
    rank.store().set("key", "value");
    for (;;) ::pause();
  });
  ::_exit(1);
}

/// As of a program that was killed with all its processes.
TEST(RankProcesses, RemoveTheFolderThatAKilledRunLeft) {
  const test::TempFolder folder;
  ASSERT_EQ(::setenv("TMPDIR", folder.path().c_str(), 1), 0);
  const pid_t check = start_waiting_check();
  ASSERT_GT(check, 0);
  while (!has_key(folder.path())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_THAT(failures_of(processes(), 2, [](Rank&) {}), IsEmpty());
  EXPECT_TRUE(has_key(folder.path())) << "the folder is in use";
  ::kill(check, SIGKILL);
  ::waitpid(check, nullptr, 0);
  // Its ranks are killed by the kernel, some time after it.
  for (int run = 0; run < 1000 && !std::filesystem::is_empty(folder.path()); ++run)
    EXPECT_THAT(failures_of(processes(), 2, [](Rank&) {}), IsEmpty());
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

} // namespace
