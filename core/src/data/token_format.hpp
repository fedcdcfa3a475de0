// SPDX-License-Identifier: Apache-2.0
// Megatron's indexed dataset, version 1: the layout of PREFIX.idx, and the token types of PREFIX.bin.
//
// Only definitions; token_index.hpp reads and checks an index.
//
// PREFIX.bin has the tokens of all sequences, one after another. PREFIX.idx, little-endian and without padding:
//   char magic[9]; u64 version; u8 type; u64 sequences; u64 documents;
//   i32 size[sequences]        in tokens
//   i64 pointer[sequences]     in bytes of PREFIX.bin
//   i64 document[documents]    0, then the number of the first sequence after each document
// Source: megatron/core/datasets/indexed_dataset.py of Megatron-LM.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triax::data {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

inline constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
inline constexpr std::uint64_t kIndexVersion = 1;
inline constexpr std::size_t kIndexHeaderBytes = 34;

/// The values are the codes of the format. f64 and f32 cannot hold tokens.
enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, f64 = 6, f32 = 7, u16 = 8 };

/// Calls `use` with a value of the C++ type for tokens of `type`, which must be an integer type.
template <class Use>
decltype(auto) with_token_type(TokenType type, Use&& use) {
  switch (type) {
    case TokenType::u8:
      return use(std::uint8_t{});
    case TokenType::i8:
      return use(std::int8_t{});
    case TokenType::i16:
      return use(std::int16_t{});
    case TokenType::u16:
      return use(std::uint16_t{});
    case TokenType::i32:
      return use(std::int32_t{});
    default:
      return use(std::int64_t{});
  }
}

inline std::size_t bytes_of(TokenType type) {
  return with_token_type(type, [](auto token) { return sizeof(token); });
}

} // namespace triax::data
