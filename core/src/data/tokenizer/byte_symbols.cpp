// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/byte_symbols.hpp"

#include <array>

#include "data/tokenizer/utf8.hpp"

namespace triax::data {

namespace {

constexpr char32_t kFirstOther = 0x100;
constexpr int kOthers = 68;

constexpr bool maps_to_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<char32_t, 256> symbol{};
  std::array<int, kFirstOther + kOthers> byte{};
};

constexpr Tables make_tables() {
  Tables out;
  for (int& byte : out.byte) byte = -1;
  char32_t other = kFirstOther;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t symbol = maps_to_itself(byte) ? static_cast<char32_t>(byte) : other++;
    out.symbol[static_cast<std::size_t>(byte)] = symbol;
    out.byte[symbol] = byte;
  }
  return out;
}

constexpr Tables kTables = make_tables();

} // namespace

char32_t symbol_of(std::uint8_t byte) {
  return kTables.symbol[byte];
}

std::string to_symbols(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_utf8(out, symbol_of(static_cast<std::uint8_t>(byte)));
  return out;
}

std::optional<std::string> from_symbols(std::string_view symbols) {
  std::string out;
  while (!symbols.empty()) {
    const char32_t symbol = take_character(symbols);
    if (symbol >= kTables.byte.size() || kTables.byte[symbol] < 0) return std::nullopt;
    out += static_cast<char>(kTables.byte[symbol]);
  }
  return out;
}

} // namespace triax::data
