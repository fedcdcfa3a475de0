// SPDX-License-Identifier: Apache-2.0
// Numbers of ranks as text: "3, 7-12, 40".
//
// Threads: pure. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <vector>

namespace triax::control {

/// `ranks` ascend. Three and more consecutive ones are written as a range. After ten ranks or ranges: " and 31 more".
std::string rank_ranges(const std::vector<int>& ranks);

} // namespace triax::control
