// SPDX-License-Identifier: Apache-2.0
// The file of a plugin that a subcommand of `triax plugins` names.
//
// Blocking: reads folders. Errors: Error with what was searched.
#pragma once

#include <string>
#include <vector>

#include "plugin/loader.hpp"

namespace triax::app {

/// The folders of --path first.
std::vector<plugin::SearchFolder> folders_to_search(const std::vector<std::string>& given);

/// An argument with a slash or the ending .so is a path; otherwise it is a name to search for.
plugin::Found locate_plugin(const std::string& given, const std::vector<std::string>& folders);

} // namespace triax::app
