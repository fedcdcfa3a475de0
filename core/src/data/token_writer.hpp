// SPDX-License-Identifier: Apache-2.0
// Writes a dataset (PREFIX.bin, .idx, .json, and -tokenizer.json if its tokenizer has one) to temporary files ending in
// ".partial", and renames them when all are complete.
//
// Ownership: owns its files; without commit(), the destructor removes them. Blocking: writes. Memory: constant. Errors:
// Error with the file and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/output_file.hpp"
#include "data/token_format.hpp"

namespace triax::data {

/// The files of a dataset in the order in which they are renamed: the index last, because a dataset without it is not
/// valid.
std::vector<std::filesystem::path> dataset_files(const std::filesystem::path& prefix);
std::filesystem::path partial(const std::filesystem::path& file);

/// Properties that all tokens of a dataset share.
struct TokenFormat {
  TokenType type = TokenType::u16; // u16 or i32
  std::string info;                // contents of PREFIX.json
  std::string tokenizer;           // contents of PREFIX-tokenizer.json; empty: no such file
};

class TokenWriter {
 public:
  TokenWriter(const std::filesystem::path& prefix, TokenFormat format);
  ~TokenWriter();

  /// The ids must be in the range of the type.
  void add(std::span<const std::int32_t> tokens);
  void end_document();
  /// Completes the temporary files.
  void finish();
  /// Renames the finished files and replaces existing ones. The writer cannot be used afterwards.
  void commit();

  std::int64_t documents() const { return documents_; }
  std::int64_t tokens() const { return tokens_; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(tokens_) * bytes_of(format_.type); }

 private:
  void end_sequence();
  void write_pointers();
  void write_documents();

  void write_tokens(std::span<const std::int32_t> tokens);

  std::filesystem::path prefix_;
  TokenFormat format_;
  bool committed_ = false;
  std::unique_ptr<OutputFile> bin_, index_, json_, tokenizer_;
  std::unique_ptr<OutputFile> document_ends_; // buffered in a file: the format has them after all sizes and pointers
  std::int64_t sequence_tokens_ = 0, tokens_ = 0, sequences_ = 0, documents_ = 0;
};

} // namespace triax::data
