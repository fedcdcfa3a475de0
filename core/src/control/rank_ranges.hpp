// SPDX-License-Identifier: Apache-2.0
// Formats rank numbers: "3, 7-12, 40".
//
// Threads: pure function.
#pragma once

#include <string>
#include <vector>

namespace triax::control {

/// `ranks` in ascending order. Three or more consecutive ranks become a range. After ten ranks or ranges: " and 31
/// more".
std::string rank_ranges(const std::vector<int>& ranks);

} // namespace triax::control
