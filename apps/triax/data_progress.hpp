// SPDX-License-Identifier: Apache-2.0
// How far `triax data` is: a bar on a terminal, a line every ten seconds elsewhere.
//
// Threads: one. Ownership: values; the bar is taken off the line at the end. Blocking: writes to stderr.
// Errors: none; what cannot be shown is not.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "report/terminal.hpp"

namespace triax::app {

class DataProgress {
 public:
  explicit DataProgress(std::string verb) : verb_(std::move(verb)) {}
  ~DataProgress();
  /// Bytes read, and how many there are.
  void read(std::uint64_t done, std::uint64_t total);
  /// Tokens made, and how many there shall be.
  void made(std::int64_t tokens, std::int64_t vocab);

 private:
  using Clock = std::chrono::steady_clock;
  void show(const std::string& line);
  bool due();

  std::string verb_;
  report::Terminal terminal_ = report::stderr_terminal();
  Clock::time_point began_ = Clock::now(), last_ = began_;
  bool drawn_ = false;
};

} // namespace triax::app
