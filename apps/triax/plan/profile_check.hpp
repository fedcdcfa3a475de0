// SPDX-License-Identifier: Apache-2.0
// Whether the constants of a measured cluster file hold here: for this machine, and for these builds of the plugins.
//
// Blocking: reads the files of the plugins. Errors: returned, with the command that measures again.
#pragma once

#include <filesystem>
#include <string>

#include "config/run_config.hpp"
#include "cost/cluster.hpp"
#include "triax/error.hpp"

namespace triax::app {

/// A checksum of a plugin's file.
std::string build_of(const std::filesystem::path& library);

/// Empty for a cluster without a profile. `file`: how messages name the cluster file. `run`: whose kernel set,
/// precision, and communicator of each axis must be those of the profile; null, for --predict: the installed builds are
/// compared, and the precision must be that of the list. Options of the plugins, and the optimizer, are not compared.
Refusals check_profile(const cost::Cluster& cluster, const std::string& file, const config::RunConfig* run);

} // namespace triax::app
