// SPDX-License-Identifier: Apache-2.0
// Writes generated texts to standard output as they grow: one sample after the other, each after a line with its number
// if there are several. On a terminal, control characters are escaped.
//
// Threads: rank 0's, between the start and the end of its ranks. Ownership: borrows the stream and the signals.
// Blocking: writes. Errors: a stream that cannot be written ends the texts, as the signal SIGPIPE would.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "os/stop_signals.hpp"

namespace triax::app {

class TextOutput {
 public:
  TextOutput(std::ostream& out, bool is_terminal, std::size_t samples, os::StopSignals& signals);

  /// Before the texts of a prompt.
  void begin();
  void add(std::size_t sample, std::string_view part);
  void end(std::size_t sample);

 private:
  void write(std::string_view text);
  void write_number();

  std::ostream& out_;
  const bool is_terminal_;
  os::StopSignals& signals_;
  std::vector<std::string> waiting_; // parts of samples after the one that is written
  std::vector<bool> has_ended_;
  std::size_t written_ = 0; // the sample that is written
  char last_ = '\n';        // character of it
};

} // namespace triax::app
