// SPDX-License-Identifier: Apache-2.0
// First load of plugins, in a child process: a library whose initializers crash, exit or never return ends the child
// and not this process.
//
// Threads: as run_probe(). Ownership: values. Blocking: until all files are loaded there, or have failed. Errors: Error
// if no process can be started.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <vector>

#include "plugin/probe_process.hpp"

namespace triax::plugin {

/// Where a library is loaded for the first time.
enum class FirstLoad {
  probed, // in a child process, then in this one
  direct  // in this process: the launcher that started it has probed it
};

/// By file, why it must not be loaded here. One child loads all files that this process has not loaded yet; after a
/// failure a further one continues with the next file. A file that load() refuses is not listed: load() says why.
std::map<std::filesystem::path, ProbeFailure> probe_loading(std::span<const std::filesystem::path> files,
                                                            const CallLimits& limits = {});

} // namespace triax::plugin
