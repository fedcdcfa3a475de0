// SPDX-License-Identifier: Apache-2.0
// A copy of this process (fork without exec) that runs one function and answers with a text, so that a function that
// crashes, exits or hangs ends only the copy. The copy has the configuration, libraries and objects of this process.
//
// Header-only: the engine and the conformance library both compile it, and an installation has the library without the
// engine.
//
// Threads: the calling process should have one thread; the copy has only that one. Ownership: owns the copy; the
// destructor kills it, and so does the kernel when this process ends. Blocking: ended() blocks only after the copy has
// answered, and then until the copy has exited. Errors: the constructor throws Error if the system cannot create a
// process.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "os/descriptor.hpp"
#include "os/errno_text.hpp"
#include "os/fault_guard.hpp"
#include "os/signal_name.hpp"
#include "os/write_all.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::os {

class ForkedProcess {
 public:
  enum class Output {
    inherited, // the copy writes to the streams of this process
    captured   // output is dropped, except its last line
  };

  /// `body` gets the descriptor to which its answer will be written. It must not throw.
  ForkedProcess(const std::function<std::string(int answer)>& body, Output output) : captured_(capture_file(output)) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw Error(text("cannot create a pipe: {}", errno_text()));
    in_ = Descriptor(ends[0]);
    const Descriptor out(ends[1]);
    fcntl(out.number(), F_SETFL, 0); // the copy's writes may block
    std::cout.flush();
    std::fflush(nullptr); // else both processes would write what is buffered
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) {
      throw Error(text("cannot start a child process for plugin calls: {}", errno_text()), {},
                  "raise the limit on processes (ulimit -u), or end others");
    }
    if (pid_ == 0) be_copy(body, out.number(), captured_.number(), parent);
  }
  ~ForkedProcess() {
    if (pid_ <= 0 || ended_) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  /// The descriptor of its answer; -1 at the end of the answer.
  int descriptor() const noexcept { return open_ ? in_.number() : -1; }
  /// Reads what has arrived, and returns whether the copy has ended.
  bool ended() {
    if (ended_) return true;
    if (open_) open_ = read_some();
    int status = 0;
    const int flags = !open_ && !answer_.empty() ? 0 : WNOHANG;
    if (waitpid(pid_, &status, flags | WUNTRACED | WCONTINUED) != pid_) return false;
    is_stopped_ = WIFSTOPPED(status);
    if (is_stopped_ || WIFCONTINUED(status)) return false;
    status_ = status;
    read_some();
    return ended_ = true;
  }
  /// Whether a signal has stopped the copy; callers do not count that time.
  bool is_stopped() const noexcept { return is_stopped_; }
  /// Sends it a signal.
  void kill(int signal) const noexcept { ::kill(pid_, signal); }

  /// Wait status (waitpid), once it has ended.
  int status() const noexcept { return status_; }
  const std::string& answer() const noexcept { return answer_; }
  bool has_exited() const noexcept { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }
  bool has_answered() const noexcept { return has_exited() && !answer_.empty(); }

  /// Whether a fault signal ended it, such as SIGSEGV.
  bool has_crashed() const noexcept {
    return WIFSIGNALED(status_) && std::ranges::find(kFaults, WTERMSIG(status_)) != std::end(kFaults);
  }
  /// "called exit(3)", "crashed with SIGSEGV (Segmentation fault)", "was killed by SIGKILL (Killed)"
  std::string how_it_ended() const {
    if (!WIFSIGNALED(status_)) return text("called exit({})", WEXITSTATUS(status_));
    const int signal = WTERMSIG(status_);
    return text("{} {} ({})", has_crashed() ? "crashed with" : "was killed by", signal_name(signal), strsignal(signal));
  }

  /// The last non-empty line of captured output. UCX prints a backtrace after the error with which it aborts.
  std::string last_line() const {
    if (!captured_) return {};
    constexpr off_t kMax = 16 << 10;
    constexpr std::string_view kBacktrace = "==== backtrace";
    const int file = captured_.number();
    const off_t size = lseek(file, 0, SEEK_END), begin = std::max<off_t>(0, size - kMax);
    std::string tail(static_cast<std::size_t>(std::max<off_t>(0, size - begin)), '\0');
    const ssize_t got = pread(file, tail.data(), tail.size(), begin);
    tail.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (const std::size_t trace = tail.find(kBacktrace); trace != std::string::npos && trace > 0) tail.resize(trace);
    while (tail.ends_with('\n')) tail.pop_back();
    return tail.substr(tail.rfind('\n') + 1); // npos + 1 is 0
  }

 private:
  /// An unnamed file for the copy's output; none if the copy writes to its parent's streams.
  static Descriptor capture_file(Output output) {
    if (output == Output::inherited) return Descriptor(-1);
    const int number = memfd_create("triax-output", MFD_CLOEXEC);
    if (number < 0) throw Error(text("cannot capture the output of a process: {}", errno_text()));
    return Descriptor(number);
  }

  /// Never returns: exit handlers of the parent must not run in the copy.
  [[noreturn]] static void be_copy(const std::function<std::string(int)>& body, int out, int captured, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); // the parent ended before prctl()
    if (captured >= 0) {
      const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing >= 0) dup2(nothing, STDIN_FILENO); // standard input belongs to the parent
      dup2(captured, STDOUT_FILENO);
      dup2(captured, STDERR_FILENO);
    }
    write_all(out, body(out)); // fails if the parent has ended, or if a plugin has closed the descriptor
    _exit(0);
  }

  /// Returns false at the end of the answer.
  bool read_some() {
    char buffer[4096];
    for (;;) {
      const ssize_t size = read(in_.number(), buffer, sizeof buffer);
      if (size > 0) {
        answer_.append(buffer, static_cast<std::size_t>(size));
      } else if (size == 0) {
        return false;
      } else if (errno != EINTR) {
        return errno == EAGAIN;
      }
    }
  }

  const Descriptor captured_;
  Descriptor in_{-1};
  pid_t pid_ = -1;
  bool open_ = true, ended_ = false, is_stopped_ = false;
  int status_ = 0;
  std::string answer_;
};

} // namespace triax::os
