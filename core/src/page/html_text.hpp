// SPDX-License-Identifier: Apache-2.0
// Text from outside (folder names, values of keys) as text of an HTML page or value of an attribute.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace triax::page {

/// Characters with a meaning in HTML become entities. Control characters, those that change the order of characters,
/// and invalid UTF-8 are written as on a terminal: \u202E, \xFF.
std::string html_escaped(std::string_view text);

} // namespace triax::page
