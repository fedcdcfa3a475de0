// SPDX-License-Identifier: Apache-2.0
#include "os/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "os/errno_text.hpp"
#include "os/stop_signals.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

constexpr std::size_t kMaxLine = 65536;
constexpr int kMaxPolls = 2000; // number of waits for the end of a killed process: two seconds
constexpr useconds_t kPollUs = 1000;

/// The variables of this process, with `variables` overriding those of the same names.
std::vector<std::string> merged(const std::vector<Variable>& variables) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view old = *entry;
    const std::string_view name = old.substr(0, old.find('='));
    if (std::ranges::none_of(variables, [name](const Variable& given) { return given.name == name; }))
      out.emplace_back(old);
  }
  for (const Variable& given : variables) out.push_back(given.name + "=" + given.value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& one : texts) out.push_back(one.data());
  out.push_back(nullptr);
  return out;
}

/// Arguments of posix_spawn: no input, output into the pipe, stop signals blocked.
class SpawnPlan {
 public:
  explicit SpawnPlan(int output) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files_, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t stops; // pending until os/stop_signals unblocks them
    sigemptyset(&stops);
    for (const int signal : kStopSignals) sigaddset(&stops, signal);
    posix_spawnattr_setsigmask(&attributes_, &stops);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

[[noreturn]] void no_process(int why) {
  throw Error(text("cannot start the process of a rank: {}", errno_text(why)), {},
              "use fewer ranks, or allow more processes and open files (ulimit -u, ulimit -n)");
}

} // namespace

Child::Child(const std::vector<std::string>& arguments, const std::vector<Variable>& variables) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) no_process(errno);
  fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  std::vector<std::string> words = {"triax"}, environment = merged(variables);
  words.insert(words.end(), arguments.begin(), arguments.end());
  int failed = 0;
  {
    const SpawnPlan plan(pipe[1]);
    // This program, even if its file has been replaced since it started.
    failed = posix_spawn(&pid_, "/proc/self/exe", &plan.files_, &plan.attributes_, pointers(words).data(),
                         pointers(environment).data());
  }
  close(pipe[1]);
  if (failed != 0) {
    close(pipe[0]);
    no_process(failed);
  }
  output_ = pipe[0];
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      ended_(other.ended_),
      status_(other.status_),
      partial_(std::move(other.partial_)) {}

Child::~Child() {
  // A process that hangs in the kernel is abandoned.
  if (pid_ > 0 && !ended()) kill();
  for (int polls = 0; pid_ > 0 && polls < kMaxPolls && !ended(); ++polls) usleep(kPollUs);
  if (output_ >= 0) close(output_);
}

std::vector<std::string> Child::lines() {
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  std::size_t budget = kMaxLine; // limit per call, so that a rank with endless output cannot block its launcher
  while (output_ >= 0 && budget >= buffer.size() && (count = read(output_, buffer.data(), buffer.size())) > 0) {
    partial_.append(buffer.data(), static_cast<std::size_t>(count));
    budget -= static_cast<std::size_t>(count);
  }
  // Processes that a rank has started may keep the pipe open longer than the rank lives.
  const bool all = output_ >= 0 && count <= 0 && (count == 0 || ended_);
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
    out.push_back(partial_.substr(begin, end - begin));
  partial_.erase(0, begin);
  if (!partial_.empty() && (all || partial_.size() > kMaxLine)) out.push_back(std::exchange(partial_, {}));
  if (all) close(std::exchange(output_, -1));
  return out;
}

bool Child::ended() noexcept {
  if (ended_) return true;
  const pid_t found = waitpid(pid_, &status_, WNOHANG);
  ended_ = found == pid_ || (found < 0 && errno == ECHILD); // ECHILD: reaped elsewhere, so its status is lost
  return ended_;
}

void Child::kill() noexcept {
  if (pid_ > 0 && !ended_) ::kill(pid_, SIGKILL);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return text("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return text("ended with status {}", WEXITSTATUS(status));
}

void end_with_parent(pid_t parent) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(1); // the parent ended before prctl()
}

} // namespace triax::os
