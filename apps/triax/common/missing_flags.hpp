// SPDX-License-Identifier: Apache-2.0
// Reports all missing flags at once; CLI11 reports only the first.
//
// Errors: CLI::RequiredError.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace triax::app {

/// "--pipeline is required", "--pipeline, --chunks and --cap are required"; empty for none.
inline std::string required_text(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 < names.size() ? ", " : " and ";
    out += names[i];
  }
  if (!names.empty()) out += names.size() == 1 ? " is required" : " are required";
  return out;
}

/// Throws with the texts that are not empty, if there are any.
inline void require_nothing(const std::vector<std::string>& missing) {
  std::string out;
  for (const std::string& text : missing) {
    if (!text.empty()) out += (out.empty() ? "" : "; ") + text;
  }
  if (!out.empty()) throw CLI::RequiredError(out, CLI::ExitCodes::RequiredError);
}

} // namespace triax::app
