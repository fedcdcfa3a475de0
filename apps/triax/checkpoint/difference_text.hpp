// SPDX-License-Identifier: Apache-2.0
// The difference of two checkpoints as text and as JSON.
//
// Threads: pure functions.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/checkpoint_difference.hpp"

namespace triax::app {

struct ComparedFolders {
  std::filesystem::path first, second;
};

struct DifferenceStyle {
  bool weights_only = false; // what was compared
  bool all = false;          // every tensor that differs; else those that differ most
};

std::string difference_text(const checkpoint::CheckpointDifference& found, const ComparedFolders& folders,
                            const DifferenceStyle& style);
/// One line.
std::string difference_json(const checkpoint::CheckpointDifference& found, const ComparedFolders& folders);

} // namespace triax::app
