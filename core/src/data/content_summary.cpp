// SPDX-License-Identifier: Apache-2.0
#include "data/content_summary.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/digest.hpp"
#include "triax/text.hpp"

namespace triax::data {

namespace {

constexpr std::int64_t kPieces = 16, kPieceTokens = 2048;

} // namespace

std::string content_summary(const TokenFile& file) {
  const std::int64_t tokens = file.tokens(), length = std::min(kPieceTokens, tokens);
  std::vector<std::int32_t> piece(static_cast<std::size_t>(length));
  Digest digest;
  for (std::int64_t number = 0; number < kPieces; ++number) {
    file.read((tokens - length) / kPieces * number, piece);
    for (const std::int32_t token : piece) digest.add(std::int64_t{token});
  }
  file.read(tokens - length, piece); // up to the last token
  for (const std::int32_t token : piece) digest.add(std::int64_t{token});
  return text("{} tokens, checksum {}", tokens, digest.text());
}

} // namespace triax::data
