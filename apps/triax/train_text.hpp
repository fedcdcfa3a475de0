// SPDX-License-Identifier: Apache-2.0
// What `triax train` says of a run: its first line, its result, and what to try next.
//
// Threads: one. Ownership: values. Blocking: looks at paths. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "config/loaded.hpp"
#include "train/loop.hpp"
#include "train/preflight.hpp"

namespace triax::app {

/// As it works from the working folder, fit for a terminal: control characters are escaped.
std::string shown(const std::filesystem::path& path);

/// Which file a plugin is, if it shadows another one of its name; else empty.
std::string shadowing_note(const config::PluginChoice& choice);

/// What is accepted and may not be what was meant; a sentence each.
std::vector<std::string> notes(const config::RunConfig& run);

/// "examples/run.toml: 10.8 M parameters, pipeline 2 x tensor 2 x data 1; model-gpt, ...; 4 ranks as processes, ..."
std::string start_line(const config::RunConfig& run, const train::Preflight& checked,
                       const train::Placement& placement);
/// "trained 200 steps: loss 5.5875 to 2.5613, 2.4 k tokens/s, metrics in runs/quickstart/metrics.jsonl"
/// or, of kernels that model time alone, "ran 2 steps: kernels-sim computed nothing, ..."; then what is missing.
std::string result_line(const config::RunConfig& run, const train::LoopResult& result);
std::string stop_line(const config::RunConfig& run, const train::LoopResult& result);
/// The command that trains twice the steps from fresh weights, in another folder. Its words are quoted for a shell.
std::string next_line(const config::RunConfig& run, const std::string& file,
                      const std::vector<config::Override>& overrides);

} // namespace triax::app
