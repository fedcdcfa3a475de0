// SPDX-License-Identifier: Apache-2.0
// A copy of the process: how it ended, what it sent, and the signals that are passed on to it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>

#include "os/stop_signals.hpp"
#include "os/supervised_process.hpp"

namespace triax::os {
namespace {

/// Runs `body` in a copy of this process, which ends with its result.
template <class Body>
SupervisedProcess::End supervise(const Body& body) {
  SupervisedProcess process;
  if (process.is_copy()) ::_exit(body(process)); // no destructor of the test program
  return process.wait();
}

TEST(SupervisedProcess, TheExitStatusAndAllTextsArrive) {
  const std::string text(200'000, 'x'); // more than a pipe holds
  const SupervisedProcess::End end = supervise([&](SupervisedProcess& process) {
    process.send("begun\n");
    process.send(text);
    return 7;
  });
  ASSERT_TRUE(WIFEXITED(end.status));
  EXPECT_EQ(WEXITSTATUS(end.status), 7);
  EXPECT_TRUE(end.sent == "begun\n" + text) << end.sent.size();
  EXPECT_FALSE(end.signal);
}

TEST(SupervisedProcess, ACopyThatIsKilledIsSeenAsKilled) {
  const SupervisedProcess::End end = supervise([](SupervisedProcess& process) {
    process.send("begun\n");
    return ::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(end.status));
  EXPECT_EQ(WTERMSIG(end.status), SIGKILL);
  EXPECT_EQ(end.sent, "begun\n");
  EXPECT_FALSE(end.signal) << "the signal was not for this process";
}

/// Returns the signal that StopSignals has caught, or 0 after ten seconds.
int caught_by(const StopSignals& signals) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 1000 && signals.caught() == 0; ++i) std::this_thread::sleep_for(10ms);
  return signals.caught();
}

/// The work may end as soon as it sees the signal, and its log with it.
TEST(StopSignals, ASignalIsLoggedBeforeTheWorkSeesIt) {
  class SeenWhenLogged : public Log {
   public:
    bool enabled(LogLevel) const noexcept override { return true; }
    void write(LogLevel, std::string_view line) noexcept override {
      line_ = line;
      seen_ = signals_->caught();
    }
    const StopSignals* signals_ = nullptr;
    std::string line_;
    int seen_ = -1;
  };
  SeenWhenLogged log;
  StopSignals signals;
  log.signals_ = &signals;
  signals.set_log(&log, kEndOfToken);
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(caught_by(signals), SIGTERM);
  EXPECT_EQ(log.line_, "SIGTERM: stopping after this token; a second signal ends the process immediately");
  EXPECT_EQ(log.seen_, 0);
}

TEST(SupervisedProcess, ASignalIsPassedOnAndCountsOnce) {
  using namespace std::chrono_literals;
  for (const int signal : kStopSignals) {
    const SupervisedProcess::End end = supervise([&](SupervisedProcess& process) {
      StopSignals signals(StopSignals::From::user, process.supervisor());
      ::kill(::getpid(), signal); // a terminal sends it to both
      ::kill(process.supervisor(), signal);
      const int caught = caught_by(signals);
      std::this_thread::sleep_for(300ms); // a second signal would end the process at once, with another status
      return caught;
    });
    ASSERT_TRUE(WIFEXITED(end.status)) << signal;
    EXPECT_EQ(WEXITSTATUS(end.status), signal);
    EXPECT_TRUE(end.signal);
  }
}

TEST(SupervisedProcess, ASecondSignalIsPassedOnToo) {
  const SupervisedProcess::End end = supervise([](SupervisedProcess& process) {
    StopSignals signals(StopSignals::From::user, process.supervisor());
    ::kill(process.supervisor(), SIGTERM);
    caught_by(signals);
    ::kill(process.supervisor(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(10));
    return 0;
  });
  ASSERT_TRUE(WIFEXITED(end.status));
  EXPECT_EQ(WEXITSTATUS(end.status), 128 + SIGTERM);
}

TEST(SupervisedProcess, AStoppedCopyGetsASignalToo) {
  const SupervisedProcess::End end = supervise([](SupervisedProcess& process) {
    StopSignals signals(StopSignals::From::user, process.supervisor());
    if (::fork() == 0) { // sends it while the copy is stopped
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(process.supervisor(), SIGTERM);
      ::_exit(0);
    }
    ::raise(SIGSTOP);
    return caught_by(signals);
  });
  ASSERT_TRUE(WIFEXITED(end.status));
  EXPECT_EQ(WEXITSTATUS(end.status), SIGTERM);
}

TEST(SupervisedProcess, TheCopyEndsWithIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t between = ::fork();
  ASSERT_GE(between, 0);
  if (between == 0) {
    ::close(ends[0]);
    SupervisedProcess process;
    if (process.is_copy()) ::pause(); // keeps its end of the pipe open
    ::_exit(0);                       // without the destructor, which would end it
  }
  ::close(ends[1]);
  ::waitpid(between, nullptr, 0);
  char none;
  EXPECT_EQ(::read(ends[0], &none, 1), 0) << "nobody holds the pipe any more";
  ::close(ends[0]);
}

} // namespace
} // namespace triax::os
