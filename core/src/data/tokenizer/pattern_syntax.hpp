// The regular expressions that cut text into words: read in the syntax that tokenizer files are written in
// (Oniguruma's), written in PCRE2's so that both find the same.
//
// Threads: pure. Ownership: values. Blocking: never. Errors: Error naming the construct and its place in the pattern.
// Taken are the constructs that tokenizers of the GPT-2 family use and whose meaning in both is one; the rest is
// refused: what looks back or at the text's ends would see another text where a long one is read in pieces.
#pragma once

#include <string>
#include <string_view>

namespace triax::data {

/// For PCRE2 with PCRE2_UTF and PCRE2_UCP.
std::string to_pcre2(std::string_view pattern);

} // namespace triax::data
