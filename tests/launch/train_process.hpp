// SPDX-License-Identifier: Apache-2.0
// A `triax train` process in the background, which tests can kill, stop and wait for.
//
// Threads: one. Ownership: owns the process, and kills it in the destructor if it still runs. Blocking: wait() until it
// ends.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"

namespace triax::test {

/// kill(2), but refuses the pid of an ended process (-1), with which kill(2) would signal every process of the machine.
inline void send_signal(pid_t pid, int signal) {
  if (pid <= 0) throw std::runtime_error("the process to be signalled has ended");
  ::kill(pid, signal);
}

/// In the order of their start.
inline std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> out;
  for (pid_t child = 0; file >> child;) out.push_back(child);
  return out;
}

class TrainProcess {
 public:
  /// Starts the process in `folder`; its output goes to NAME.out and NAME.err there.
  TrainProcess(const std::filesystem::path& folder, const std::string& name, std::vector<std::string> arguments,
               std::vector<std::string> variables = {})
      : out_(folder / (name + ".out")), err_(folder / (name + ".err")) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out_.c_str(), kNew, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err_.c_str(), kNew, 0600);
    posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
    arguments.insert(arguments.begin(), "triax");
    for (char** entry = environ; *entry; ++entry)
      if (!std::string_view(*entry).starts_with("TRIAX_PLUGIN_PATH=")) variables.emplace_back(*entry);
    const int failed = posix_spawn(&pid_, TRIAX_BINARY_DIR "/bin/triax", &files, nullptr, pointers(arguments).data(),
                                   pointers(variables).data());
    posix_spawn_file_actions_destroy(&files);
    if (failed != 0) throw std::runtime_error("triax cannot be started");
  }
  ~TrainProcess() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) wait();
  }
  TrainProcess(TrainProcess&& other) noexcept
      : out_(other.out_), err_(other.err_), pid_(std::exchange(other.pid_, -1)) {}
  TrainProcess& operator=(TrainProcess&&) = delete;

  pid_t pid() const { return pid_; } // -1: ended
  bool ended() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ < 0;
  }
  /// Exit status, or 128 + the number of the signal that ended it.
  int wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  /// Its child processes, in the order of their ranks.
  std::vector<pid_t> ranks() const { return children_of(pid_); }
  std::string out() const { return read_file(out_); }
  std::string err() const { return read_file(err_); }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& one : texts) out.push_back(one.data());
    out.push_back(nullptr);
    return out;
  }

  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
  int status_ = 0;
};

inline int threads_of(pid_t pid) {
  std::error_code none;
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", none);
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

/// True if the process exists and is not a zombie.
inline bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t state = line.rfind(") ");
  return state != std::string::npos && line[state + 2] != 'Z';
}

/// Waits up to 10 s for the end of a process that somebody else has killed: a killed process takes a while to go.
inline bool ends_soon(pid_t pid) {
  for (int i = 0; i < 1000 && alive(pid); ++i) ::usleep(10'000);
  return !alive(pid);
}

} // namespace triax::test
