// SPDX-License-Identifier: Apache-2.0
// Which architecture of which model plugin a config.json names.
//
// Threads: the main thread. Blocking: loads model plugins. Errors: Error with the file, if none or several fit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "hf/mapped_model.hpp"

namespace triax::hf {

struct ArchitectureChoice {
  MappedPlugin plugin;
  std::size_t index = 0; // in its architectures
};

/// `model`: the plugin; empty: the one that has the architecture. `paths`: folders that are searched first.
ArchitectureChoice choose_architecture(const ModelConfig& config, const std::string& model,
                                       const std::vector<std::filesystem::path>& paths);

} // namespace triax::hf
