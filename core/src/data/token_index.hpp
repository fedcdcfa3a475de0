// Reads and checks PREFIX.idx.
//
// Threads: any. Ownership: values. Blocking: reads all of the index once, in pieces: memory is constant. Errors: Error
// naming the file, what is wrong in it, and what may be done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "data/token_format.hpp"

namespace triax::data {

struct TokenIndex {
  TokenType type = TokenType::u16;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0; // of all sequences
};

/// Fills `out` with the bytes of the index from `offset` on.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

/// Throws Error naming file, field and values wherever the index contradicts its format, itself, or the length of
/// PREFIX.bin. Any bytes are safe to pass: `read` is called for the first `index_bytes` only.
TokenIndex read_token_index(const std::filesystem::path& file, std::uint64_t index_bytes, const ReadAt& read,
                            const std::filesystem::path& bin_file, std::uint64_t bin_bytes);

} // namespace triax::data
