// SPDX-License-Identifier: Apache-2.0
// `triax schedule` as a command.
#pragma once

#include <string>

#include "support/program.hpp"

namespace triax::test {

inline Outcome schedule(const std::string& arguments, const std::string& streams = "2>&1") {
  return run(".", "schedule " + arguments, streams);
}

} // namespace triax::test
