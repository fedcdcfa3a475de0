// SPDX-License-Identifier: Apache-2.0
// A rank as a process of its own: this program again, with other arguments and variables, and its output read through a
// pipe.
//
// Threads: one, which should live as long as the child: the kernel ends the child with the thread that made it
// (end_with_parent). Ownership: owns the process and the pipe; a child still running at the end is killed. Blocking:
// only the destructor, a moment for the end of a process that was killed. Errors: the constructor throws Error if the
// system does not give a process or a pipe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace triax::launch {

struct Variable {
  std::string name, value;
};

class Child {
 public:
  /// `arguments` go after the program's name; `variables` go over those of this process. The child's input is empty;
  /// it starts with SIGINT, SIGTERM and SIGHUP blocked, and no other signal.
  Child(const std::vector<std::string>& arguments, const std::vector<Variable>& variables);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// Readable when there is output; -1 once all has been read.
  int output() const noexcept { return output_; }
  /// The lines that have come since the last call; after the child's end also a last one without its newline.
  std::vector<std::string> lines();
  /// Whether it has ended, and then how (waitpid).
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

/// For a child, first thing: the kernel kills it when `parent` goes. Ends the process at once if it has gone already.
void end_with_parent(pid_t parent) noexcept;

} // namespace triax::launch
