// SPDX-License-Identifier: Apache-2.0
// Progress of a search on stderr: a line that is redrawn on a terminal, else nothing.
//
// Ownership: the destructor removes the line. Blocking: writes to stderr.
#pragma once

#include <chrono>
#include <cstddef>

#include "os/terminal.hpp"

namespace triax::app {

class SearchProgress {
 public:
  SearchProgress() = default;
  ~SearchProgress();
  SearchProgress(const SearchProgress&) = delete;
  SearchProgress& operator=(const SearchProgress&) = delete;
  void show(std::size_t timed);

 private:
  const os::Terminal terminal_ = os::stderr_terminal();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool is_drawn_ = false;
};

} // namespace triax::app
