// SPDX-License-Identifier: Apache-2.0
// Translates the regular expressions of tokenizer files, in Oniguruma's syntax, to PCRE2's syntax with the same
// matches.
//
// Errors: Error with the construct and its position in the pattern.
// Supports the constructs that tokenizers of the GPT-2 family use and that have the same meaning in both. All other
// constructs are refused. In particular, look-behind and anchors would see a different text when a long text is read in
// parts.
#pragma once

#include <string>
#include <string_view>

namespace triax::data {

/// The pattern for PCRE2 with PCRE2_UTF and PCRE2_UCP.
std::string to_pcre2(std::string_view pattern);

} // namespace triax::data
