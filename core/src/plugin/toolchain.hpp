// SPDX-License-Identifier: Apache-2.0
// Checks whether a plugin and this engine can share C++ classes, by their TRIAX_TOOLCHAIN texts (the rule is in
// triax/toolchain.h).
//
// Threads: any. Errors: returned.
#pragma once

#include <string_view>

#include "triax/error.hpp"

namespace triax::plugin {

/// Whether the text's library is "c": a plugin written in C, which can be described but not create objects.
bool is_c(std::string_view toolchain);

/// yes, or the difference: "built with the address sanitizer; this triax has none". For a plugin in C, only the
/// sanitizer must match.
Refusals compatible(std::string_view plugin, std::string_view engine);

} // namespace triax::plugin
