// SPDX-License-Identifier: Apache-2.0
#include "os/fault_guard.hpp"

#include <poll.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <string_view>

#include "os/signal_name.hpp"
#include "triax/toolchain.h"

namespace triax::os {

namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10; // more than MINSIGSTKSZ with AVX-512
constexpr int kPollMs = 5;

enum class State { none, recording, waiting, taken, reported };

// Global: a signal handler has no user argument, and signals are of the whole process.
std::atomic<pid_t> guarded{0}; // this process while a guard exists: a child that it forks has no thread that reports
std::atomic<State> state{State::none};
std::atomic<pid_t> reporter{0}; // the thread that reports
Fault fault;                    // written before `state` is `waiting`

const void* instruction([[maybe_unused]] void* context) {
#if defined(__x86_64__)
  return std::bit_cast<const void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return std::bit_cast<const void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  return nullptr;
#endif
}

/// Does not block on a pipe that is full.
void write_if_possible(std::string_view line) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void report_briefly(int signal) {
  write_if_possible("triax: a plugin or Triax crashed with SIG");
  const char* const name = sigabbrev_np(signal);
  write_if_possible(name ? name : "?");
  write_if_possible(", and the report of it could not be written in time\n");
}

void wait_for_report(int signal) {
  for (int waited = 0; state.load() != State::reported; waited += kPollMs) {
    if (waited >= FaultGuard::kReportMs) return report_briefly(signal);
    poll(nullptr, 0, kPollMs);
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  if (guarded.load() == getpid() && reporter.load() != gettid()) {
    State none = State::none;
    if (state.compare_exchange_strong(none, State::recording)) {
      const bool is_sent = info->si_code <= 0 && info->si_pid != getpid();
      fault = {signal, is_sent ? info->si_pid : 0, instruction(context), RankActivity::current()};
      state.store(State::waiting);
    } // else another thread crashed first: the process ends with its signal
    wait_for_report(signal);
  }
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal); // blocked here: the default action, once this returns
}

[[maybe_unused]] bool is_action(int signal, const void* wanted) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) != 0) return false;
  return (action.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<const void*>(action.sa_sigaction) == wanted
                                             : reinterpret_cast<const void*>(action.sa_handler) == wanted;
}

} // namespace

FaultGuard::FaultGuard() {
  state = State::none;
  reporter = 0;
  guarded = getpid();
  install();
}

FaultGuard::~FaultGuard() {
  guarded = 0;
  for (const int signal : kFaults) {
    if (!is_action(signal, reinterpret_cast<const void*>(&handle))) continue; // it was not default, or is another's now
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
}

void FaultGuard::install() noexcept {
  if (std::string_view(TRIAX_TOOLCHAIN_SANITIZER) != "none") return;
  for (const int signal : kFaults) {
    if (!is_action(signal, reinterpret_cast<const void*>(SIG_DFL))) continue;
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = static_cast<int>(SA_ONSTACK | SA_SIGINFO);
    sigaction(signal, &action, nullptr);
  }
}

std::optional<Fault> FaultGuard::take() noexcept {
  State waiting = State::waiting;
  if (!state.compare_exchange_strong(waiting, State::taken)) return std::nullopt;
  reporter = gettid();
  return fault;
}

void FaultGuard::reported() noexcept {
  state = State::reported;
}

FaultStack::FaultStack() {
  stack_t before{};
  if (sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
  memory_ = std::make_unique<std::byte[]>(kStackBytes);
  const stack_t stack{memory_.get(), 0, kStackBytes};
  sigaltstack(&stack, nullptr);
}

FaultStack::~FaultStack() {
  if (!memory_) return;
  const stack_t none{nullptr, SS_DISABLE, 0};
  sigaltstack(&none, nullptr);
}

std::string to_text(const Fault& of) {
  const std::string signal = text("{} ({})", signal_name(of.signal), strsignal(of.signal));
  return of.sender == 0 ? text("crashed with {}", signal) : text("was ended by {} from process {}", signal, of.sender);
}

} // namespace triax::os
