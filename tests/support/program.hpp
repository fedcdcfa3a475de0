// SPDX-License-Identifier: Apache-2.0
// Runs the triax program as users do, and captures its output.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "support/golden.hpp"
#include "support/installation.hpp"

namespace triax::test {

struct Outcome {
  int status = 0;
  std::string text;
};

/// Runs a shell command; returns its standard output.
inline Outcome run_command(const std::string& command) {
  Outcome out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("popen " + command);
  char buffer[4096];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.text.append(buffer, got);
  const int status = ::pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

/// Runs triax in `folder`. `streams` selects the captured output: "2>&1 >/dev/null" captures stderr only.
inline Outcome run(const std::filesystem::path& folder, const std::string& arguments, const std::string& streams) {
  return run_command("cd '" + folder.string() + "' && env -u TRIAX_PLUGIN_PATH '" +
                     (installation() / "bin/triax").string() + "' " + arguments + " " + streams);
}

} // namespace triax::test
