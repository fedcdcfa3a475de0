// SPDX-License-Identifier: Apache-2.0
// parallel.split = "auto" of a run that a verb has loaded.
#pragma once

#include <string>

#include "config/load.hpp"

namespace triax::app {

/// The run with numbers of blocks in place of "auto" (plan::resolve_split()), or with the reasons why it has none.
config::LoadResult with_split(config::LoadResult loaded);

/// "parallel.split = "auto" is [3, 3, 2]: ...". Empty for another split.
std::string split_text(const config::RunConfig& run);

} // namespace triax::app
