// SPDX-License-Identifier: Apache-2.0
// What every subcommand needs of the process that started this one. Without it, each fails at another place, often in a
// library, with an error that names no cause.
//
// Blocking: never. Errors: returned.
#pragma once

#include <string>

namespace triax::app {

/// The error, with the next step; empty: nothing is missing. Raises the limit of open files as far as necessary.
std::string missing_surroundings();

} // namespace triax::app
