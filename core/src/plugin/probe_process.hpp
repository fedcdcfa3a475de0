// SPDX-License-Identifier: Apache-2.0
// Runs a function that calls plugins in a child process: a plugin that crashes, exits or never returns ends the child,
// and the parent can say which plugin it was and in which call.
//
// Threads: the calling process should have one thread; the child has that one alone. Ownership: values. Blocking: until
// the function returns, or one of its calls takes too long. Errors: Error if no process can be started; what becomes of
// the child is in the result.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "plugin/plugin_call.hpp"

namespace triax::plugin {

/// Why a child did not finish.
struct ProbeFailure {
  std::string plugin; // empty, as `call` is: outside of all plugin calls
  std::filesystem::path file;
  std::string call;    // "its constructor"
  std::string outcome; // "crashed with SIGSEGV (Segmentation fault)", "called exit(3)", "did not return within 30 s"
  std::string printed; // the last line that the child printed, where its output was captured

  /// "its constructor crashed with SIGSEGV (Segmentation fault); it printed: ..."
  std::string reason() const;
};

struct ProbeResult {
  std::string output;                  // what the function returned
  std::optional<ProbeFailure> failure; // then there is no output
};

enum class ProbeOutput {
  inherited, // the child writes to the streams of its parent
  captured   // what it prints is dropped, but for the last line of a child that fails
};

/// Throws Error with the text of a std::exception that `body` throws.
ProbeResult run_probe(const std::function<std::string()>& body, ProbeOutput output, const CallLimits& limits = {});

/// The next step for the user and for the author of a plugin that failed. `file` may be empty.
std::string probe_hint(const std::filesystem::path& file);

} // namespace triax::plugin
