// SPDX-License-Identifier: Apache-2.0
// Where `triax generate` gets prompts from: a flag, a file, standard input, or lines that a user types.
//
// Blocking: reads. Errors: Error with the file or the flag.
#pragma once

#include <optional>
#include <string>

#include "generate/generate_arguments.hpp"
#include "os/stop_signals.hpp"

namespace triax::app {

/// The text of --prompt, --file or "-"; empty: lines of the terminal that is standard input. A file's last line break
/// is not part of the prompt. Throws Error if there is no prompt and no terminal.
std::optional<std::string> given_prompt(const GenerateArguments& arguments);

/// Reads lines from a terminal.
class TypedLines {
 public:
  explicit TypedLines(const os::StopSignals& signals) : signals_(signals) {}
  /// The next line that is not empty; nothing at the end of the input (Ctrl-D), or once a signal came.
  std::optional<std::string> next();

 private:
  bool read_more();

  const os::StopSignals& signals_;
  std::string read_;
  bool is_at_end_ = false, has_begun_ = false;
};

} // namespace triax::app
