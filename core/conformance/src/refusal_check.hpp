// SPDX-License-Identifier: Apache-2.0
// Checks that a refusal of a plugin has a message, and the keys that the user can change.
#pragma once

#include <string>

#include "triax/conformance/report.hpp"

namespace triax::conformance {

/// "parallel.chunks": a table and a key.
inline bool is_full_key(const std::string& key) {
  const std::size_t dot = key.find('.');
  return dot != std::string::npos && dot > 0 && dot + 1 < key.size() && key.find(' ') == std::string::npos;
}

/// `at`: the question that was refused.
inline void check_reasons(const Refusals& refusals, const std::string& at, Report& report) {
  for (const Refusal& refusal : refusals) {
    report.expect(!refusal.message.empty(), "{}: a refusal has no message", at);
    report.expect(!refusal.keys.empty(), "{}: the refusal \"{}\" has an empty list of keys (Refusal::keys)", at,
                  refusal.message);
    for (const std::string& key : refusal.keys)
      report.expect(is_full_key(key),
                    "{}: the refusal \"{}\" has the key \"{}\", which must be a full name such as \"{}\"", at,
                    refusal.message, key, "parallel.chunks");
  }
}

} // namespace triax::conformance
