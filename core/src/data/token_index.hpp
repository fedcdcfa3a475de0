// SPDX-License-Identifier: Apache-2.0
// Reads and checks PREFIX.idx.
//
// Blocking: reads the whole index once, in blocks; memory is constant. Errors: Error with the file, the problem and a
// hint.
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
  std::int64_t tokens = 0; // sum over all sequences
};

/// Fills `out` with the bytes of the index from `offset` on.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

/// Throws Error with file, field and values if the index is inconsistent with its format, itself, or the size of
/// PREFIX.bin. Safe for arbitrary bytes: `read` is only called within the first `index_bytes`.
TokenIndex read_token_index(const std::filesystem::path& file, std::uint64_t index_bytes, const ReadAt& read,
                            const std::filesystem::path& bin_file, std::uint64_t bin_bytes);

} // namespace triax::data
