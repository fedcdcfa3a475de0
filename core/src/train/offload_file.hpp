// SPDX-License-Identifier: Apache-2.0
// The file of a rank that has its offloaded optimizer state (memory.offload = "disk"). It is scratch: nothing continues
// from it, and it disappears with its process.
//
// Threads: any. Blocking: asks the file system, creates a folder and a file. Errors: Error with the next step; refusals
// are returned.
#pragma once

#include <filesystem>

#include "config/run_config.hpp"
#include "executor/rank_state.hpp"
#include "train/plugins.hpp"
#include "train/preflight.hpp"

namespace triax::train {

/// memory.offload_path, or run.dir.
const std::filesystem::path& offload_folder(const config::RunConfig& run);
/// Gives the state of a rank its file, for which it creates the folder, or the kernel set that updates it on the host;
/// nothing if it is in the memory of the device.
void open_offloaded(const config::RunConfig& run, int rank, const RankPlugins& plugins, executor::RankState& state);
/// Whether files can be created in the folder, and it has space for those of the ranks of this machine. In a run on
/// several machines, these are not known here, so those that need least are counted.
Refusals check_offload_folder(const config::RunConfig& run, const Preflight& preflight, const Placement& placement);

} // namespace triax::train
