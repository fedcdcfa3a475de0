// SPDX-License-Identifier: Apache-2.0
// The tables and keys that the core owns, in the form in which plugins declare theirs: checking, describing and the
// documentation read this one list.
//
// Threads: constant data. Ownership: static. Blocking: never. Errors: none.
#pragma once

#include <span>
#include <string_view>

#include "triax/abi.h"

namespace triax::config {

struct CoreKey {
  triax_option option;           // default NULL: required, unless `derived` is set
  const char* derived = nullptr; // how the value comes about where none is written
};

struct CoreTable {
  const char* name; // "comm.tensor"
  const char* doc;  // one line
  const char* kind; // of the plugin the table names in `plugin`, "communicator"; nullptr: it names none
  std::span<const CoreKey> keys;
  bool inherits = false; // without `plugin`, it takes [comm]'s
};

/// In the order in which a run is described.
std::span<const CoreTable> core_tables();
const CoreTable* find_core_table(std::string_view name);

} // namespace triax::config
