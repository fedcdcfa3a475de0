// SPDX-License-Identifier: Apache-2.0
// Check "search": where a plugin was found, or every folder that was searched and what is similar there.
#pragma once

#include <string>
#include <vector>

#include "doctor/diagnosis.hpp"
#include "plugin/loader.hpp"

namespace triax::doctor {

/// Adds the check, and sets the file if there is one.
void check_search(const std::string& plugin, const std::vector<plugin::SearchFolder>& folders, Diagnosis& out);

} // namespace triax::doctor
