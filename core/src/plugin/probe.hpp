// SPDX-License-Identifier: Apache-2.0
// First load of plugins, in a child process: a library whose initializers crash, exit or hang ends the child, not this
// process.
//
// Threads: as for run_probe(). Blocking: until all files are loaded there, or have failed. Errors: Error if no process
// can be started.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <vector>

#include "plugin/probe_process.hpp"

namespace triax::plugin {

/// Where a library is loaded for the first time.
enum class FirstLoad {
  probed, // in a child process, then in this process
  direct  // in this process: the launcher has already probed it
};

/// By file, why it must not be loaded here. One child loads all files that this process has not loaded yet; after a
/// failure, another child loads the other files. A file that load() rejects is not listed, because load() reports it.
/// If the dynamic linker rejects a file there, load() reports that here without another attempt.
std::map<std::filesystem::path, ProbeFailure> probe_loading(std::span<const std::filesystem::path> files,
                                                            const CallLimits& limits = {});

} // namespace triax::plugin
