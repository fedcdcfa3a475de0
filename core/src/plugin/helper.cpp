#include "plugin/helper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "triax/error.hpp"

namespace triax::plugin {

namespace {

using Clock = std::chrono::steady_clock;

/// Starts the command with stdin and stderr on /dev/null, and stdout on `out`.
pid_t start(const std::vector<std::string>& command, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw Error(text("could not be started: {}", std::strerror(failed)), command.front());
  return child;
}

/// Reads until the other end is closed; false if the time is over before.
bool read_all(int in, std::string& output, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{in, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char buffer[4096];
    const ssize_t size = read(in, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(size));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

} // namespace

HelperResult run_helper(const std::vector<std::string>& command, std::chrono::seconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(text("no pipe: {}", std::strerror(errno)), command.front());
  HelperResult result;
  try {
    const pid_t child = start(command, ends[1]);
    close(ends[1]);
    ends[1] = -1;
    const bool answered = read_all(ends[0], result.output, Clock::now() + limit);
    if (!answered) kill(child, SIGKILL);
    const int status = wait_for(child);
    if (!answered) {
      result.failure = text("no answer after {} s", limit.count());
    } else if (WIFSIGNALED(status)) {
      result.failure = text("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
      result.status = WEXITSTATUS(status);
    }
  } catch (...) {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
    throw;
  }
  close(ends[0]);
  return result;
}

} // namespace triax::plugin
