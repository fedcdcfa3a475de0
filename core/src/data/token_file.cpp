// SPDX-License-Identifier: Apache-2.0
// TokenFile: reads PREFIX.bin in blocks, and checks it against PREFIX.idx.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "checksum/checksum.hpp"
#include "data/dataset.hpp"
#include "data/token_index.hpp"
#include "data/tokenizer_choice.hpp"
#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::data {

struct TokenFile::Impl {
  os::InputFile bin;
  TokenIndex index;
};

namespace {

/// Tokens per block: enough to vectorise the search for minimum and maximum, and few enough for the cache.
constexpr std::int64_t kScanTokens = 1 << 14;
/// Bytes per read of a sample. The buffer is on the stack, because reading samples must not allocate.
constexpr std::size_t kSampleReadBytes = 1 << 14;

struct Extremes {
  std::int64_t smallest = 0, largest = 0;
};

template <class Token>
Extremes extremes(const Token* begin, const Token* end) {
  Token smallest = *begin;
  Token largest = *begin;
  for (const Token* token = begin; token != end; ++token) {
    smallest = std::min(smallest, *token);
    largest = std::max(largest, *token);
  }
  return {static_cast<std::int64_t>(smallest), static_cast<std::int64_t>(largest)};
}

/// Reads tokens [offset, offset + out.size()) in the type of the file.
template <class Token>
void read_tokens(const os::InputFile& bin, std::int64_t offset, std::span<Token> out) {
  bin.read_at(static_cast<std::uint64_t>(offset) * sizeof(Token), std::as_writable_bytes(out));
}

/// Calls use(first token of the block, minimum and maximum, begin, end) for each block until it returns false.
template <class Token, class Use>
void each_block(const os::InputFile& bin, std::int64_t count, Use&& use) {
  std::vector<Token> block(static_cast<std::size_t>(std::min(count, kScanTokens)));
  for (std::int64_t begin = 0; begin < count; begin += kScanTokens) {
    block.resize(static_cast<std::size_t>(std::min(count - begin, kScanTokens)));
    read_tokens<Token>(bin, begin, block);
    const Token *first = block.data(), *end = first + block.size();
    if (!use(begin, extremes(first, end), first, end)) return;
  }
}

} // namespace

TokenFile::TokenFile(const std::filesystem::path& prefix) {
  const std::filesystem::path index_file = beside(prefix, ".idx");
  const std::filesystem::path bin_file = beside(prefix, ".bin");
  const os::InputFile index(index_file, how_to_prepare(prefix));
  os::InputFile bin(bin_file, how_to_prepare(prefix));
  const auto read_at = [&index](std::uint64_t offset, std::span<std::byte> out) { index.read_at(offset, out); };
  const TokenIndex read = read_token_index(index_file, index.bytes(), read_at, bin_file, bin.bytes());
  impl_ = std::make_unique<Impl>(Impl{std::move(bin), read});
}

TokenFile::~TokenFile() = default;
TokenFile::TokenFile(TokenFile&&) noexcept = default;

std::int64_t TokenFile::tokens() const {
  return impl_->index.tokens;
}

std::int64_t TokenFile::largest() const {
  TRIAX_REQUIRE(tokens() > 0, "the largest of no tokens");
  return with_token_type(impl_->index.type, [this](auto token) {
    std::int64_t largest = std::numeric_limits<std::int64_t>::min();
    each_block<decltype(token)>(impl_->bin, tokens(), [&](std::int64_t, Extremes block, auto, auto) {
      largest = std::max(largest, block.largest);
      return true;
    });
    return largest;
  });
}

TokenScan TokenFile::scan(std::int64_t vocab) const {
  return with_token_type(impl_->index.type, [this, vocab](auto token) {
    using Token = decltype(token);
    TokenScan out;
    Checksum checksum;
    each_block<Token>(
        impl_->bin, tokens(), [&](std::int64_t first, Extremes block, const Token* begin, const Token* end) {
          checksum.add(std::as_bytes(std::span(begin, end)));
          if (block.smallest >= 0 && block.largest < vocab) return true;
          const Token* bad = std::find_if(
              begin, end, [vocab](Token id) { return std::cmp_less(id, 0) || std::cmp_greater_equal(id, vocab); });
          out.outside = TokenAt{first + (bad - begin), static_cast<std::int64_t>(*bad)};
          return false;
        });
    if (!out.outside) out.checksum = checksum.text();
    return out;
  });
}

void TokenFile::read(std::int64_t offset, std::span<std::int32_t> out) const {
  read(offset, static_cast<std::int64_t>(out.size()), out.data(), 1);
}

void TokenFile::read(std::int64_t offset, std::int64_t count, std::int32_t* out, std::int64_t stride) const {
  TRIAX_REQUIRE(offset >= 0 && count >= 0 && offset <= tokens() && count <= tokens() - offset,
                "tokens [{}, {}) are outside a file of {}", offset, offset + count, tokens());
  with_token_type(impl_->index.type, [&](auto token) {
    using Token = decltype(token);
    std::array<Token, kSampleReadBytes / sizeof(Token)> piece;
    for (std::int64_t done = 0; done < count;) {
      const auto taken = std::min(count - done, static_cast<std::int64_t>(piece.size()));
      read_tokens<Token>(impl_->bin, offset + done, std::span(piece).first(static_cast<std::size_t>(taken)));
      std::int32_t* to = out + done * stride;
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): a signed char here is a number
      for (std::int64_t i = 0; i < taken; ++i) to[i * stride] = static_cast<std::int32_t>(piece[i]);
      done += taken;
    }
  });
}

} // namespace triax::data
