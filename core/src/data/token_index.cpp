// SPDX-License-Identifier: Apache-2.0
#include "data/token_index.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string>
#include <vector>

#include "triax/error.hpp"

namespace triax::data {

namespace {

constexpr const char* kCutOff = "it is truncated or damaged: copy it or prepare it again";

using Header = std::array<std::byte, kIndexHeaderBytes>;

template <class T>
T load(const Header& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// One array of the index, read in blocks from beginning to end.
template <class T>
class Column {
 public:
  Column(const ReadAt& read, std::uint64_t begin, std::uint64_t count) : read_(read), begin_(begin), count_(count) {}

  T next() {
    if (at_ == block_.size()) {
      block_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, count_ - taken_)));
      read_(begin_ + taken_ * sizeof(T), std::as_writable_bytes(std::span(block_)));
      taken_ += block_.size();
      at_ = 0;
    }
    return block_[at_++];
  }

 private:
  static constexpr std::uint64_t kBlock = 1 << 14;
  const ReadAt& read_;
  std::uint64_t begin_, count_, taken_ = 0; // taken_: bytes of the file up to the end of the current block
  std::vector<T> block_;
  std::size_t at_ = 0;
};

std::string printable(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte byte : bytes) {
    const auto character = static_cast<unsigned char>(byte);
    out += std::isprint(character) ? static_cast<char>(character) : '.';
  }
  return out;
}

class Reader {
 public:
  Reader(const std::filesystem::path& file, std::uint64_t bytes, const ReadAt& read)
      : where_(file.string()), bytes_(bytes), read_(read) {}

  TokenIndex header() {
    if (bytes_ < kIndexHeaderBytes) {
      fail(text("has {} bytes; the header of an index alone has {}", bytes_, kIndexHeaderBytes), kCutOff);
    }
    Header header{};
    read_(0, header);
    if (std::memcmp(header.data(), kIndexMagic.data(), kIndexMagic.size()) != 0) {
      fail(text("begins with \"{}\", not with MMIDIDX", printable(std::span(header).first(kIndexMagic.size()))),
           "Triax reads Megatron's indexed datasets (mmap, version 1)");
    }
    const auto version = load<std::uint64_t>(header, 9);
    if (version != kIndexVersion) fail(text("version is {}; Triax reads version {}", version, kIndexVersion));
    TokenIndex out;
    out.type = token_type(load<std::uint8_t>(header, 17));
    sequences_ = load<std::uint64_t>(header, 18);
    documents_ = load<std::uint64_t>(header, 26);
    check_length();
    out.sequences = static_cast<std::int64_t>(sequences_);
    return out;
  }

  /// Adds up the sizes, until the sum exceeds `limit`. Each pointer must be the end of the previous sequences.
  std::int64_t tokens(TokenType type, std::int64_t limit) const {
    const auto width = static_cast<std::int64_t>(bytes_of(type));
    Column<std::int32_t> sizes(read_, kIndexHeaderBytes, sequences_);
    Column<std::int64_t> pointers(read_, kIndexHeaderBytes + 4 * sequences_, sequences_);
    std::int64_t total = 0;
    for (std::uint64_t i = 0; i < sequences_; ++i) {
      const auto size = sizes.next();
      if (size < 0) fail(text("size of sequence {} is {}: it cannot be negative", i, size));
      const auto pointer = pointers.next();
      if (pointer != total * width) {
        fail(text("pointer of sequence {} is {}, but the sequences before it end at byte {}", i, pointer,
                  total * width));
      }
      total += size;
      if (total > limit) break; // the caller reports this; further additions could overflow
    }
    return total;
  }

  void check_documents() const {
    Column<std::int64_t> indices(read_, kIndexHeaderBytes + 12 * sequences_, documents_);
    std::int64_t before = 0;
    for (std::uint64_t i = 0; i < documents_; ++i) {
      const auto document = indices.next();
      if (i == 0 && document != 0) fail(text("document index 0 is {}: it must be 0", document));
      if (document < before) fail(text("document index {} is {}, after {}: it must not fall", i, document, before));
      before = document;
    }
    if (documents_ == 0 || before != static_cast<std::int64_t>(sequences_)) {
      fail(text("the last of {} document indices is {}, but there are {} sequences", documents_, before, sequences_));
    }
  }

  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    throw Error(std::move(message), where_, std::move(hint));
  }

 private:
  TokenType token_type(std::uint8_t code) const {
    const auto type = static_cast<TokenType>(code);
    if (type == TokenType::f64 || type == TokenType::f32) {
      fail(text("type code {} is {}: tokens are integers", code, type == TokenType::f64 ? "float64" : "float32"));
    }
    if (code < 1 || code > 8) {
      fail(text("type code {} is unknown", code), "known: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16");
    }
    return type;
  }

  void check_length() const {
    const std::uint64_t payload = bytes_ - kIndexHeaderBytes;
    // Check the counts first, so that computing the size cannot overflow.
    const bool fits = sequences_ <= payload / 12 && documents_ <= payload / 8;
    if (fits && 12 * sequences_ + 8 * documents_ == payload) return;
    const bool multimodal = fits && 13 * sequences_ + 8 * documents_ == payload && sequences_ > 0;
    if (multimodal) {
      fail(text("has a mode for each of its {} sequences: a multimodal dataset", sequences_),
           "prepare a dataset of text only");
    }
    constexpr std::uint64_t kShown = std::uint64_t{1} << 58; // larger counts could overflow the size
    const std::string expected = sequences_ < kShown && documents_ < kShown
                                     ? text(", expected {}", kIndexHeaderBytes + 12 * sequences_ + 8 * documents_)
                                     : std::string(", too few");
    fail(text("has {} bytes{} for {} sequence{} and {} document {}", bytes_, expected, sequences_,
              sequences_ == 1 ? "" : "s", documents_, documents_ == 1 ? "index" : "indices"),
         kCutOff);
  }

  std::string where_;
  std::uint64_t bytes_;
  const ReadAt& read_;
  std::uint64_t sequences_ = 0, documents_ = 0;
};

} // namespace

TokenIndex read_token_index(const std::filesystem::path& file, std::uint64_t index_bytes, const ReadAt& read,
                            const std::filesystem::path& bin_file, std::uint64_t bin_bytes) {
  Reader reader(file, index_bytes, read);
  TokenIndex out = reader.header();
  const auto limit = static_cast<std::int64_t>(bin_bytes / bytes_of(out.type));
  out.tokens = reader.tokens(out.type, limit);
  reader.check_documents();
  const std::uint64_t expected = static_cast<std::uint64_t>(out.tokens) * bytes_of(out.type);
  if (bin_bytes != expected) {
    throw Error(text("has {} bytes, but {} needs {} {} ({} tokens of {} bytes)", bin_bytes, file.filename(),
                     out.tokens > limit ? "at least" : "exactly", expected, out.tokens, bytes_of(out.type)),
                bin_file.string(), "the two files do not belong together, or one of them is truncated");
  }
  return out;
}

} // namespace triax::data
