// SPDX-License-Identifier: Apache-2.0
// Checks the environment that every subcommand requires (limits of open files and of the stack, a working folder), so
// that the error names the cause.
//
// Blocking: never. Errors: returned.
#pragma once

#include <string>

namespace triax::app {

/// The error, with the next step; empty: the environment suffices. Raises these limits as far as necessary.
std::string environment_error();

} // namespace triax::app
