// Writes one dataset (PREFIX.bin, .idx, .json, and -tokenizer.json if its tokenizer has one) under temporary names,
// which end in ".partial", and renames them when all is written.
//
// Threads: one. Ownership: owns its files; a writer that goes without commit() removes what it wrote. Blocking: writes.
// Memory: constant. Errors: Error naming the file and the system's reason.
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

/// The files of a dataset, in the order they take their names: the index last, since without it there is no dataset.
std::vector<std::filesystem::path> dataset_files(const std::filesystem::path& prefix);
std::filesystem::path partial(const std::filesystem::path& file);

/// What is the same for all tokens of a dataset.
struct TokenFormat {
  TokenType type = TokenType::u16; // u16 or i32
  std::string info;                // the whole of PREFIX.json
  std::string tokenizer;           // the whole of PREFIX-tokenizer.json; empty: there is none
};

class TokenWriter {
 public:
  TokenWriter(const std::filesystem::path& prefix, TokenFormat format);
  ~TokenWriter();

  /// Ids that the type holds.
  void add(std::span<const std::int32_t> tokens);
  void end_document();
  /// Completes the files under their temporary names.
  void finish();
  /// Gives the finished files their names, in place of files that have them already. Then the writer has nothing left.
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
  std::unique_ptr<OutputFile> document_ends_; // spooled: the format has them after all sizes and pointers
  std::int64_t sequence_tokens_ = 0, tokens_ = 0, sequences_ = 0, documents_ = 0;
};

} // namespace triax::data
