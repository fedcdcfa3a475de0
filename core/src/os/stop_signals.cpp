// SPDX-License-Identifier: Apache-2.0
// Waits for signals on a separate thread: without a handler, nothing is global.
#include "os/stop_signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/start_thread.hpp"
#include "os/signal_name.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

constexpr std::string_view kEnding = "ending immediately";

} // namespace

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

StopSignals::StopSignals(From from, pid_t supervisor) : from_(from), supervisor_(supervisor) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGQUIT}) {
    const bool is_default = signal == SIGQUIT && from == From::launcher;
    if (!is_default && !is_ignored(signal)) sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  try {
    thread_ = start_thread("the signal thread",
                           [this] { return std::jthread([this](const std::stop_token& stop) { watch(stop); }); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    throw;
  }
  // The caller may fork at once, and a sanitizer's allocator has no handlers for fork: a thread that starts may hold
  // its lock, which the child could not get any more.
  watches_.wait(false);
}

StopSignals::~StopSignals() {
  thread_.request_stop();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void StopSignals::set_log(Log* log, const char* end) {
  end_.store(end);
  const std::lock_guard lock(mutex_);
  log_ = log;
}

void StopSignals::watch(const std::stop_token& stop) {
  watches_ = true;
  watches_.notify_one();
  constexpr timespec kTenth{0, 100'000'000};
  while (!stop.stop_requested()) {
    siginfo_t info{};
    const int signal = sigtimedwait(&signals_, &info, &kTenth);
    if (signal < 0 || is_repetition(info)) continue;
    if (signal == SIGQUIT) quit();
    received_.store(signal); // first: a reader of caught_ finds the sender here
    const bool at_once = caught_.load() != 0 || at_once_.load();
    // Before the work can end, and its log with it.
    if (from_ != From::launcher)
      report_soon(signal, at_once ? std::string(kEnding)
                                  : text("stopping {}; a second signal ends the process immediately", end_.load()));
    caught_.store(signal);
    if (from_ == From::launcher || !at_once) continue;
    run_soon([this, signal] {
      const std::lock_guard lock(end_mutex_);
      if (before_end_) before_end_(signal);
    });
    std::_Exit(128 + signal);
  }
}

/// A signal to a group of processes comes twice: directly, and from the supervisor. So does each later one.
bool StopSignals::is_repetition(const siginfo_t& from) {
  if (supervisor_ == 0) return false;
  const int before = std::max(from_supervisor_, from_others_);
  ++(from.si_pid == supervisor_ ? from_supervisor_ : from_others_);
  return std::max(from_supervisor_, from_others_) == before;
}

void StopSignals::set_before_end(std::function<void(int signal)> before_end) {
  const std::lock_guard lock(end_mutex_);
  before_end_ = std::move(before_end);
}

void StopSignals::report_soon(int signal, std::string what) {
  run_soon([this, signal, what = std::move(what)] { report(signal, what); });
}

/// Works on another thread, and waits for it only shortly: if stderr is a pipe that is full, logging blocks, and the
/// next signal must still be received.
void StopSignals::run_soon(std::function<void()> work) {
  constexpr auto kTimeout = std::chrono::milliseconds(200);
  auto done = std::make_shared<std::promise<void>>();
  const std::future<void> end = done->get_future();
  try {
    reporters_.emplace_back([work = std::move(work), done] {
      work();
      done->set_value();
    });
  } catch (const std::system_error&) { // no thread for the message; the signal counts all the same
    return;
  }
  end.wait_for(kTimeout);
}

void StopSignals::report(int signal, std::string_view what) {
  const std::string line = text("{}: {}", signal_name(signal), what);
  const std::lock_guard lock(mutex_);
  if (log_) {
    log_->info("{}", line);
  } else if (what == kEnding) {
    const std::string with_end = line + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, with_end.data(), with_end.size());
  }
}

/// Triggers the default action, on this thread.
void StopSignals::quit() {
  report_soon(SIGQUIT, std::string(kEnding));
  sigset_t quit;
  sigemptyset(&quit);
  sigaddset(&quit, SIGQUIT);
  pthread_sigmask(SIG_UNBLOCK, &quit, nullptr);
  ::raise(SIGQUIT);
  std::_Exit(128 + SIGQUIT); // a handler has been installed elsewhere
}

} // namespace triax::os
