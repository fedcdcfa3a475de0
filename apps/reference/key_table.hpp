// SPDX-License-Identifier: Apache-2.0
// The keys of a run that --set can change, for completions. Keys of plugins are not among them, because they belong to
// the plugins that a run names.
#pragma once

#include <string>
#include <vector>

#include "command_table.hpp"

namespace triax::reference {

struct Key {
  std::string name; // "lr.decay"
  std::string doc;
  Completion completion;
};

/// In the order of docs/configuration.md.
std::vector<Key> read_keys();

} // namespace triax::reference
