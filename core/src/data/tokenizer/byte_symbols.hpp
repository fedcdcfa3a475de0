// SPDX-License-Identifier: Apache-2.0
// GPT-2's text form of bytes: each byte of a token is written as one printable character, so that vocabularies are
// text. Printable ASCII and Latin-1 represent themselves; the other 68 bytes are the characters from U+0100 on.
//
// Source: bytes_to_unicode() of github.com/openai/gpt-2, encoder.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::data {

char32_t symbol_of(std::uint8_t byte);
/// The symbols of all bytes, as UTF-8.
std::string to_symbols(std::string_view bytes);
/// Empty if a character is not a symbol. `symbols` must be valid UTF-8.
std::optional<std::string> from_symbols(std::string_view symbols);

} // namespace triax::data
