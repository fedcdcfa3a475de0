// SPDX-License-Identifier: Apache-2.0
#include "data/token_writer.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <vector>

#include "data/token_format.hpp"
#include "data/tokenizer_choice.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

/// Sizes are 32-bit. A longer document becomes several sequences, which the format allows.
constexpr std::int64_t kMaxSequence = std::int64_t{1} << 30;
constexpr std::int64_t kCopyCount = 1 << 14; // numbers copied at a time

} // namespace

std::vector<std::filesystem::path> dataset_files(const std::filesystem::path& prefix) {
  return {beside(prefix, ".bin"), beside(prefix, ".json"), tokenizer_file(prefix), beside(prefix, ".idx")};
}

std::filesystem::path partial(const std::filesystem::path& file) {
  return beside(file, ".partial");
}

TokenWriter::TokenWriter(const std::filesystem::path& prefix, TokenFormat format)
    : prefix_(prefix), format_(std::move(format)) {
  std::vector<std::filesystem::path> made;
  const auto open = [&made](const std::filesystem::path& file) {
    auto out = std::make_unique<OutputFile>(partial(file), OutputFile::Lasting::named);
    made.push_back(partial(file));
    return out;
  };
  try {
    bin_ = open(beside(prefix, ".bin"));
    index_ = open(beside(prefix, ".idx"));
    json_ = open(beside(prefix, ".json"));
    if (!format_.tokenizer.empty()) tokenizer_ = open(tokenizer_file(prefix));
    document_ends_ =
        std::make_unique<OutputFile>(partial(beside(prefix, ".documents")), OutputFile::Lasting::anonymous);
    const std::array<char, kIndexHeaderBytes> zeros{}; // the header is written at the end
    index_->write(zeros.data(), zeros.size());
    end_document();
  } catch (...) { // the destructor does not run if the constructor throws
    std::error_code ignored;
    for (const std::filesystem::path& file : made) std::filesystem::remove(file, ignored);
    throw;
  }
}

TokenWriter::~TokenWriter() {
  if (committed_) return;
  std::error_code ignored;
  for (const auto& file : dataset_files(prefix_)) std::filesystem::remove(partial(file), ignored);
}

void TokenWriter::add(std::span<const std::int32_t> tokens) {
  while (!tokens.empty()) {
    const auto taken =
        static_cast<std::size_t>(std::min(static_cast<std::int64_t>(tokens.size()), kMaxSequence - sequence_tokens_));
    write_tokens(tokens.first(taken));
    sequence_tokens_ += static_cast<std::int64_t>(taken);
    tokens_ += static_cast<std::int64_t>(taken);
    tokens = tokens.subspan(taken);
    if (sequence_tokens_ == kMaxSequence) end_sequence();
  }
}

void TokenWriter::write_tokens(std::span<const std::int32_t> tokens) {
  if (format_.type == TokenType::i32) return bin_->write(tokens.data(), tokens.size_bytes());
  std::array<std::uint16_t, 4096> narrow;
  while (!tokens.empty()) {
    const std::size_t taken = std::min(tokens.size(), narrow.size());
    for (std::size_t i = 0; i < taken; ++i) narrow[i] = static_cast<std::uint16_t>(tokens[i]);
    bin_->write(narrow.data(), taken * sizeof narrow.front());
    tokens = tokens.subspan(taken);
  }
}

void TokenWriter::end_sequence() {
  const auto size = static_cast<std::int32_t>(sequence_tokens_);
  index_->write(&size, sizeof size);
  ++sequences_;
  sequence_tokens_ = 0;
}

void TokenWriter::end_document() {
  if (sequence_tokens_ > 0) end_sequence();
  document_ends_->write(&sequences_, sizeof sequences_);
  documents_ = static_cast<std::int64_t>(document_ends_->bytes() / sizeof sequences_) - 1; // the first entry is 0
}

void TokenWriter::finish() {
  write_pointers();
  write_documents();
  std::string header(kIndexMagic);
  const auto append = [&header](const auto& value) {
    header.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  append(kIndexVersion);
  append(format_.type);
  append(static_cast<std::uint64_t>(sequences_));
  append(static_cast<std::uint64_t>(documents_ + 1));
  index_->write_at(0, header.data(), header.size());
  json_->write(format_.info.data(), format_.info.size());
  if (tokenizer_) {
    tokenizer_->write(format_.tokenizer.data(), format_.tokenizer.size());
    tokenizer_->close();
  }
  bin_->close();
  index_->close();
  json_->close();
}

void TokenWriter::write_pointers() {
  std::vector<std::int32_t> sizes(kCopyCount);
  std::int64_t pointer = 0;
  for (std::int64_t first = 0; first < sequences_; first += kCopyCount) {
    sizes.resize(static_cast<std::size_t>(std::min(kCopyCount, sequences_ - first)));
    index_->read_at(kIndexHeaderBytes + 4 * static_cast<std::uint64_t>(first), sizes.data(), 4 * sizes.size());
    for (const std::int32_t size : sizes) {
      index_->write(&pointer, sizeof pointer);
      pointer += size * static_cast<std::int64_t>(bytes_of(format_.type));
    }
  }
}

void TokenWriter::write_documents() {
  std::vector<std::int64_t> ends(kCopyCount);
  for (std::int64_t first = 0; first < documents_ + 1; first += kCopyCount) {
    ends.resize(static_cast<std::size_t>(std::min(kCopyCount, documents_ + 1 - first)));
    document_ends_->read_at(8 * static_cast<std::uint64_t>(first), ends.data(), 8 * ends.size());
    index_->write(ends.data(), 8 * ends.size());
  }
}

void TokenWriter::commit() {
  std::error_code failure;
  const auto files = dataset_files(prefix_);
  // Remove the old index first, so that an index never exists next to tokens of another dataset.
  std::filesystem::remove(files.back(), failure);
  for (const auto& file : files) {
    if (!tokenizer_ && file == tokenizer_file(prefix_)) { // may be left from an earlier dataset
      std::filesystem::remove(file, failure);
      continue;
    }
    std::filesystem::rename(partial(file), file, failure);
    if (failure)
      throw Error(text("cannot be named {}: {}", file.filename(), failure.message()), partial(file).string());
  }
  committed_ = true;
}

} // namespace triax::data
