// SPDX-License-Identifier: Apache-2.0
// Checks of the tables of HfMapping: mistakes of a plugin's author that would show up as errors of the user.
//
// Threads: pure functions. Errors: Error with the plugin, its file and the row.
#pragma once

#include <string>
#include <vector>

#include "hf/model_config.hpp"
#include "triax/hf_mapping.hpp"

namespace triax::hf {

/// Whose tables they are, for errors.
struct TableOwner {
  std::string plugin, file;
};

/// `rows`: the options of the plugin, and "vocab".
void check_architectures(const std::vector<HfArchitecture>& architectures, const OptionRows& rows,
                         const TableOwner& owner);

/// `parameters`: of one architecture.
void check_parameters(const std::vector<HfParameter>& parameters, const TableOwner& owner);

} // namespace triax::hf
