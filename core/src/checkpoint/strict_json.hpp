// SPDX-License-Identifier: Apache-2.0
// Parses JSON texts that other programs wrote and that may be damaged or made to do harm: no key occurs twice in an
// object, nesting is limited, and no number loses its value.
//
// Threads: pure functions. Errors: returned. Included only by files that use nlohmann-json.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/shape_json.hpp"

namespace triax::checkpoint {

/// The defect of the text: "is not valid JSON at line 1, column 9", "has the key "x" twice". `out` is then not defined.
/// Empty: nothing.
std::string parse_strict(std::string_view json, Json& out);

} // namespace triax::checkpoint
