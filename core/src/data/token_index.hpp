// Reads and checks PREFIX.idx.
//
// Threads: any; a pure function. Ownership: values. Blocking: reads all of the index once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "data/token_format.hpp"

namespace triax::data {

struct TokenIndex {
  TokenType type = TokenType::u16;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0; // of all sequences
};

/// Throws Error naming file, field and values wherever the index contradicts its format, itself, or the length of
/// PREFIX.bin. Any bytes are safe to pass.
TokenIndex read_token_index(const std::filesystem::path& file, std::span<const std::byte> index,
                            const std::filesystem::path& bin_file, std::uint64_t bin_bytes);

} // namespace triax::data
