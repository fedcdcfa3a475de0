// SPDX-License-Identifier: Apache-2.0
// A copy of this process (fork) that does its work, so that this one knows how it ended, and can do it again.
//
// Signals that stop a run (os/stop_signals.hpp) and SIGQUIT go to the copy. A terminal or a batch system may have sent
// them to both; StopSignals in the copy counts the two as one.
//
// Threads: the only thread of the process; send(): any. Ownership: owns the copy, which the kernel kills when this
// process ends. Blocking: wait(), until the copy ends. Errors: the constructor throws Error if the system cannot create
// a process.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <mutex>
#include <string>

namespace triax::os {

class SupervisedProcess {
 public:
  SupervisedProcess();
  ~SupervisedProcess();
  SupervisedProcess(const SupervisedProcess&) = delete;
  SupervisedProcess& operator=(const SupervisedProcess&) = delete;

  /// Whether this is the copy. It must not call wait().
  bool is_copy() const { return pid_ == 0; }
  /// In the copy: the process that supervises it, for StopSignals.
  pid_t supervisor() const { return supervisor_; }
  /// In the copy: sends a text to the other process. What cannot be sent is lost.
  void send(const std::string& sent);

  struct End {
    int status = 0;      // wait status (waitpid)
    std::string sent;    // all texts of the copy, one after another
    bool signal = false; // this process has received a signal for the copy
  };
  End wait();

 private:
  void pass_signal(End& end) const;
  void read(std::string& to);

  pid_t supervisor_;
  sigset_t signals_{}, mask_before_{};
  int signals_read_ = -1;
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
  std::mutex mutex_; // guards send()
};

} // namespace triax::os
