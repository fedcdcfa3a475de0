// SPDX-License-Identifier: Apache-2.0
// Progress of `triax data`: a bar on a terminal, else a line every ten seconds.
//
// Ownership: the destructor removes the bar. Blocking: writes to stderr. Errors: none; write errors are ignored.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "os/terminal.hpp"

namespace triax::app {

class DataProgress {
 public:
  explicit DataProgress(std::string verb) : verb_(std::move(verb)) {}
  ~DataProgress();
  /// Bytes read, and their total.
  void read(std::uint64_t done, std::uint64_t total);
  /// Tokens created, and their final number.
  void made(std::int64_t tokens, std::int64_t vocab);

 private:
  using Clock = std::chrono::steady_clock;
  void show(const std::string& line);
  bool due();

  std::string verb_;
  os::Terminal terminal_ = os::stderr_terminal();
  Clock::time_point began_ = Clock::now(), last_ = began_;
  bool drawn_ = false;
};

} // namespace triax::app
