// SPDX-License-Identifier: Apache-2.0
// Whether a plugin and this engine can share C++ classes, by their TRIAX_TOOLCHAIN texts (triax/toolchain.h has the
// rule).
//
// Threads: any. Ownership: values. Blocking: never. Errors: none; what does not go is the answer.
#pragma once

#include <string_view>

#include "triax/error.hpp"

namespace triax::plugin {

/// The text's library is "c": a door written in C, which can be described but makes no objects.
bool is_c(std::string_view toolchain);

/// yes, or what differs: "built with the address sanitizer; this triax has none". A C door has to agree in the
/// sanitizer only.
Support compatible(std::string_view plugin, std::string_view engine);

} // namespace triax::plugin
