// SPDX-License-Identifier: Apache-2.0
// Runs a function that calls plugins in a child process. If a plugin crashes or exits, only the child ends; if it
// hangs, the parent kills the child after the time limit. The parent reports the plugin and the call.
//
// Threads: the calling process should have one thread; the child has only that one. Blocking: until the function
// returns, or one of its calls exceeds its time limit. Errors: Error if no process can be started; failures of the
// child are returned.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/plugin_call.hpp"

namespace triax::plugin {

/// Why a child did not complete.
struct ProbeFailure {
  std::string plugin; // empty, like `call`, if it failed outside all plugin calls
  std::filesystem::path file;
  std::string call;       // "its constructor"
  std::string outcome;    // "crashed with SIGSEGV (Segmentation fault)", "called exit(3)", "did not return within 30 s"
  std::string printed;    // the last line of the child's output, if captured
  bool is_killed = false; // by SIGKILL or SIGTERM, so perhaps not by the plugin

  /// "its constructor crashed with SIGSEGV (Segmentation fault); it printed: ..."
  std::string reason() const;
  /// The next step for the user and for the author of the plugin in `library`, which may be empty. Names an environment
  /// variable whose value, a path, the child printed: a library may end the process when it cannot use it.
  std::string hint(const std::filesystem::path& library) const;
};

struct ProbeResult {
  std::string output;                  // return value of the function
  std::optional<ProbeFailure> failure; // if set, there is no output
};

/// Receives, once for each, a slow call that has not returned for CallLimits::notice.
using SlowCallObserver = std::function<void(const PluginCall&)>;

enum class ProbeOutput {
  inherited, // the child writes to the streams of its parent
  captured   // output is dropped, except the last line of a child that fails
};

/// If `body` throws a std::exception, throws Error with its text.
ProbeResult run_probe(const std::function<std::string()>& body, ProbeOutput output, const CallLimits& limits = {},
                      const SlowCallObserver& slow = {});

/// Runs several functions concurrently, each in a separate child. Returns the results in their order.
std::vector<ProbeResult> run_probes(std::span<const std::function<std::string()>> bodies, ProbeOutput output,
                                    const CallLimits& limits = {}, const SlowCallObserver& slow = {});

} // namespace triax::plugin
