// SPDX-License-Identifier: Apache-2.0
// Checks the environment that every subcommand requires (limits of open files and of the stack, a working folder), so
// that the error names the cause.
//
// Blocking: never. Errors: returned.
#pragma once

#include <optional>

#include "triax/error.hpp"

namespace triax::app {

/// Why the environment does not suffice. Raises these limits as far as necessary.
std::optional<Refusal> environment_error();

} // namespace triax::app
