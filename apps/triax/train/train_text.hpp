// SPDX-License-Identifier: Apache-2.0
// Messages of `triax train`: first line, result, and next step.
//
// Blocking: queries the file system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "train/loop.hpp"
#include "train/preflight.hpp"

namespace triax::app {

/// As a path from the working folder, with control characters escaped.
std::string shown(const std::filesystem::path& path);

/// Which file a plugin is, if it shadows another one of its name; else empty.
std::string shadowing_note(const config::PluginChoice& choice);

/// Warnings about valid values that may be mistakes; one sentence each. `device`: of the kernel set, if it is
/// installed.
std::vector<std::string> notes(const config::RunConfig& run, std::optional<DeviceKind> device);

/// The first lines of a run's log: what runs where, the automatic split, the chosen recomputation, and the notes.
void log_start(Log& log, const config::RunConfig& run, const train::Preflight& checked,
               const train::Placement& placement);

/// "trained 200 steps: loss 5.5875 to 2.5613, 2.4 k tokens/s, metrics in runs/quickstart/metrics.jsonl" or, for kernels
/// that only model time, "ran 2 steps: kernels-sim computed nothing, ..."; then what is missing.
std::string result_line(const config::RunConfig& run, const train::LoopResult& result);
std::string stop_line(const config::RunConfig& run, const train::LoopResult& result);
/// The line of a run that has no step left.
std::string complete_line(const config::RunConfig& run, const train::LoopResult& result);
/// The command that continues the run, or trains it for twice as many steps, quoted for a shell. Without a checkpoint,
/// from new weights in another folder; the same command if the last step could not be saved.
std::string next_line(const config::RunConfig& run, const train::LoopResult& result, const std::string& file,
                      const std::vector<config::Override>& overrides, int max_restarts);

} // namespace triax::app
