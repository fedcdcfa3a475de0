// SPDX-License-Identifier: Apache-2.0
#include "os/supervised_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <string_view>

#include "os/child_process.hpp"
#include "os/errno_text.hpp"
#include "os/stop_signals.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

void close_one(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

[[noreturn]] void fail_to_wait(const char* what) {
  throw Error(text("cannot wait for the process of the run: {}: {}", what, errno_text(errno)), {},
              "allow this user more open files (ulimit -n), or leave out --max-restarts");
}

[[noreturn]] void fail(const char* what) {
  throw Error(text("cannot start a process for the run: {}: {}", what, errno_text(errno)), {},
              "allow this user more processes (ulimit -u) or open files (ulimit -n), or leave out --max-restarts");
}

} // namespace

SupervisedProcess::SupervisedProcess() : supervisor_(::getpid()) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGCHLD);
  for (const int signal : kStopSignals)
    if (!is_ignored(signal)) sigaddset(&signals_, signal);
  if (!is_ignored(SIGQUIT)) sigaddset(&signals_, SIGQUIT);
  if (::pipe2(pipe_, O_CLOEXEC) != 0) fail("pipe");
  std::cout.flush(); // else both would write it
  ::sigprocmask(SIG_BLOCK, &signals_, &mask_before_);
  pid_ = ::fork();
  if (pid_ < 0) {
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    close_one(pipe_[0]);
    close_one(pipe_[1]);
    errno = error;
    fail("fork");
  }
  close_one(pipe_[is_copy() ? 0 : 1]);
  if (!is_copy()) return;
  end_with_parent(supervisor_);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

SupervisedProcess::~SupervisedProcess() {
  close_one(pipe_[0]);
  close_one(pipe_[1]);
  close_one(signals_read_);
  if (is_copy()) return;
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void SupervisedProcess::send(const std::string& sent) {
  const std::lock_guard lock(mutex_);
  std::string_view rest = sent;
  while (!rest.empty()) {
    const ssize_t count = ::write(pipe_[1], rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

SupervisedProcess::End SupervisedProcess::wait() {
  End end;
  signals_read_ = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_read_ < 0) fail_to_wait("signalfd");
  while (true) {
    std::array<pollfd, 2> ready{pollfd{signals_read_, POLLIN, 0}, pollfd{pipe_[0], POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) fail_to_wait("poll");
    if (ready[1].revents != 0) read(end.sent);
    pass_signal(end);
    if (::waitpid(pid_, &end.status, WNOHANG) != pid_) continue;
    while (pipe_[0] >= 0 && (ready[1] = {pipe_[0], POLLIN, 0}, ::poll(&ready[1], 1, 0) > 0)) read(end.sent);
    pid_ = -1;
    return end;
  }
}

void SupervisedProcess::read(std::string& to) {
  std::array<char, 4096> block{};
  const ssize_t count = ::read(pipe_[0], block.data(), block.size());
  if (count > 0) to.append(block.data(), static_cast<std::size_t>(count));
  if (count == 0 || (count < 0 && errno != EINTR)) close_one(pipe_[0]);
}

void SupervisedProcess::pass_signal(End& end) const {
  signalfd_siginfo got{};
  while (::read(signals_read_, &got, sizeof got) == static_cast<ssize_t>(sizeof got)) {
    if (got.ssi_signo == SIGCHLD) continue;
    end.signal = true;
    ::kill(pid_, static_cast<int>(got.ssi_signo));
    ::kill(pid_, SIGCONT); // a stopped process would not get it
  }
}

} // namespace triax::os
