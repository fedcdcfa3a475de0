// SPDX-License-Identifier: Apache-2.0
// Notices that exit() was called while the process still works, as a plugin may do.
//
// Threads: made and destroyed by one thread; one at a time. Blocking: never.
#pragma once

#include <functional>

namespace triax::os {

class ExitGuard {
 public:
  /// `on_exit` is called once on the thread that calls exit(), before static objects are destroyed. It may end the
  /// process with another status.
  explicit ExitGuard(std::function<void()> on_exit);
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

 private:
  static void call() noexcept;
  std::function<void()> on_exit_;
};

} // namespace triax::os
