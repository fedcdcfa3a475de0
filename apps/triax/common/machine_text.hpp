// SPDX-License-Identifier: Apache-2.0
// The machine of a measurement, in the outputs of `triax compare` and `triax bench`.
//
// Blocking: reads /proc. Errors: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "os/machine.hpp"

namespace triax::app {

/// "AMD EPYC, 2 cores, load 0.4, Linux 6.1.0"
std::string machine_text(const os::Machine& machine);
/// {"processor", "cores", "load", "system"}
nlohmann::ordered_json machine_json(const os::Machine& machine);

} // namespace triax::app
