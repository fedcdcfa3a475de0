// SPDX-License-Identifier: Apache-2.0
// A rank as a child process: this program again, with other arguments and variables. A pipe returns its output.
//
// Threads: one, which must live as long as the child, because the kernel kills the child when the thread that started
// it ends (end_with_parent). Ownership: owns the process and the pipe; the destructor kills a running child. Blocking:
// only the destructor, briefly, after it killed the child. Errors: the constructor throws Error if the system cannot
// create a process or a pipe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace triax::os {

struct Variable {
  std::string name, value;
};

class Child {
 public:
  /// `arguments` follow the program's name; `variables` override those of this process. The child's input is empty. It
  /// starts with SIGINT, SIGTERM, SIGHUP and SIGUSR1 blocked, and all other signals unblocked.
  Child(const std::vector<std::string>& arguments, const std::vector<Variable>& variables);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// Readable when there is output; -1 once everything has been read.
  int output() const noexcept { return output_; }
  /// The lines since the last call; after the child's end, also a last line without newline.
  std::vector<std::string> lines();
  /// Whether the child has ended; then status() is its wait status (waitpid).
  bool ended() noexcept;
  int status() const noexcept { return status_; }
  void kill() noexcept;

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::string partial_;
};

/// "killed by signal 9 (Killed)", "ended with status 1"
std::string how_it_ended(int status);

/// Call it first in a child: the kernel kills the child when `parent` ends. If `parent` has ended already, ends the
/// process at once.
void end_with_parent(pid_t parent) noexcept;

} // namespace triax::os
