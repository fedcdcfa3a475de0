// SPDX-License-Identifier: Apache-2.0
// Parses JSON texts that other programs wrote and that may be damaged or made to do harm: no key occurs twice in an
// object, and nesting is limited.
//
// Threads: pure functions. Errors: Error with `from`. Included only by files that use nlohmann-json.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/shape_json.hpp"

namespace triax::checkpoint {

struct JsonProblem {
  std::string message; // "is not valid JSON"
  std::string key;     // that occurs twice; else empty
};

/// What is wrong with the text; `out` is then not defined. Empty: nothing.
JsonProblem parse_strict(std::string_view text, Json& out);

} // namespace triax::checkpoint
