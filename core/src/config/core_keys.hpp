// SPDX-License-Identifier: Apache-2.0
// The tables and keys of the core, declared like the options of plugins. Checks, descriptions and documentation read
// this list.
//
// Threads: constants, any thread.
#pragma once

#include <span>
#include <string_view>

#include "config/run_config.hpp"
#include "triax/abi.h"
#include "triax/options.hpp"

namespace triax::config {

/// The value of parallel.split with which the engine chooses the blocks of each stage.
inline constexpr const char* kAutomaticSplit = "auto";

/// Sets a key's member of the run.
using Assign = void (*)(RunConfig& run, const OptionValue& value);

struct CoreKey {
  triax_option option;           // default NULL: required, unless `derived` is set
  const char* derived = nullptr; // how the value is found if none is written
  Assign assign = nullptr;       // null: load() reads the key together with others
  bool per_stage = false;        // also takes a list with one value for each stage: see PerStage
  const char* word = nullptr;    // accepted in place of a value of the option's type
};

struct CoreTable {
  const char* name; // "comm.tensor"
  const char* doc;  // one line
  const char* kind; // kind of the plugin that the table's key `plugin` names, "communicator"; nullptr: no such key
  std::span<const CoreKey> keys;
  bool inherits = false; // without `plugin`, the table uses the plugin of [comm]
};

inline constexpr const char* kDataTable = "data"; // token files

/// In the order in which a run is described.
std::span<const CoreTable> core_tables();
const CoreTable* find_core_table(std::string_view name);

} // namespace triax::config
