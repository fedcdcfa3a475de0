// SPDX-License-Identifier: Apache-2.0
// Creates an object of a plugin with its default options, to find out whether that works.
//
// Threads: one. Blocking: calls the plugin, so run it in a child process (probe_process.hpp). Errors: returned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugin/loader.hpp"

namespace triax::plugin {

struct TrialObject {
  std::optional<Error> error;     // thrown while it was created
  std::vector<std::string> unset; // options without a default; they have no value, so an error may be right
  /// The plugin fails without a reason that the user can remove.
  bool is_defect() const { return error && unset.empty(); }
};

/// Creates the object on a layout of one rank, and destroys it.
TrialObject try_object(const Library& library);

} // namespace triax::plugin
