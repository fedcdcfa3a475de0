// GPT-2 writes each byte of a token as one printable character, so that vocabularies are text: printable ASCII and
// Latin-1 stand for themselves, the other 68 bytes for the characters from U+0100 on.
//
// Threads: pure. Ownership: values. Blocking: never. Errors: none: what no byte is written as, is the answer.
// Source: bytes_to_unicode() of github.com/openai/gpt-2, encoder.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::data {

char32_t symbol_of(std::uint8_t byte);
/// The same as UTF-8, of every byte.
std::string to_symbols(std::string_view bytes);
/// Nothing if a character stands for no byte. `symbols` is well-formed UTF-8.
std::optional<std::string> from_symbols(std::string_view symbols);

} // namespace triax::data
