// SPDX-License-Identifier: Apache-2.0
// Token files, and the samples drawn from them.
//
// Threads: read-only after construction; any thread. Ownership: keeps PREFIX.bin open. Blocking: reads. Errors: Error
// with the file, also if it is truncated while in use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "triax/tensor.hpp"

namespace triax::data {

/// The tokenizer of PREFIX.bin, as PREFIX.json describes it.
struct TokenizerInfo {
  std::string kind; // "byte", "bpe"
  std::int64_t vocab = 0;
  std::string digest;                   // equal for tokenizers that give the same ids
  std::optional<std::int32_t> end = {}; // the token that ends documents, if there is one
};

/// Throws Error with the file and the command that creates it ("triax data prepare ...").
TokenizerInfo read_tokenizer_info(const std::filesystem::path& prefix);
/// False if PREFIX.json is valid JSON without a tokenizer: another program made it.
bool names_tokenizer(const std::filesystem::path& prefix);
/// Empty if PREFIX.json does not exist, or does not describe a tokenizer.
std::optional<TokenizerInfo> find_tokenizer_info(const std::filesystem::path& prefix);

/// A token id and its position in the stream.
struct TokenAt {
  std::int64_t position = 0;
  std::int64_t id = 0;
};

/// The findings of a read of all tokens.
struct TokenScan {
  std::optional<TokenAt> outside; // the first id that is negative or not in the vocabulary
  std::string checksum;           // of the bytes of PREFIX.bin (checksum.hpp); empty if an id is outside
};

/// A dataset in the format of Megatron's indexed dataset: PREFIX.bin (tokens) and PREFIX.idx (documents). The
/// concatenation of all documents is one stream. Ids of up to 32 bits are accepted; scan() finds ids that are not in a
/// vocabulary.
class TokenFile {
 public:
  /// Throws Error if a file is missing, truncated, of another format, or inconsistent with its index.
  explicit TokenFile(const std::filesystem::path& prefix);
  ~TokenFile();
  TokenFile(TokenFile&&) noexcept;

  std::int64_t tokens() const;
  /// Largest token id; reads the whole file once. The file must not be empty.
  std::int64_t largest() const;
  /// Reads the whole file once. Ids of the vocabulary are less than `vocab`.
  TokenScan scan(std::int64_t vocab) const;
  /// Tokens [offset, offset + out.size()) of the stream.
  void read(std::int64_t offset, std::span<std::int32_t> out) const;
  /// Reads tokens [offset, offset + count); token i goes to out[i * stride].
  void read(std::int64_t offset, std::int64_t count, std::int32_t* out, std::int64_t stride) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Samples of `sequence` tokens and their targets, the next tokens. A sample depends only on the seed and its running
/// number: sample n is window n mod N of epoch n / N, in a random order per epoch. The windows of an epoch are
/// consecutive, from a random start per epoch, so epochs cut the stream at different positions. Consecutive windows
/// share one token: the last target of one is the first token of the next.
class Dataset {
 public:
  /// Throws Error if the file has fewer than sequence + 1 tokens, or an id that is negative or at least `vocab`.
  Dataset(const std::filesystem::path& prefix, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed);

  std::int64_t samples_per_epoch() const;
  /// Fills tokens and targets, host i32 [s, b], with the b samples of these running numbers. Does not allocate. Throws
  /// Error for an id outside the vocabulary: the file was changed after the constructor had read it.
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) const;
  /// Fills column `column` of such views, without checking the views.
  void fill(std::int64_t sample, std::int64_t column, const TensorView& tokens, const TensorView& targets) const;
  /// Throws Error unless both are host i32 [s, samples].
  void check_views(std::size_t samples, const TensorView& tokens, const TensorView& targets) const;
  std::int64_t tokens() const { return file_.tokens(); }
  /// The checksum of the bytes of PREFIX.bin when the constructor read them (checksum.hpp).
  const std::string& checksum() const { return checksum_; }
  /// That of PREFIX.json when the constructor ran. Empty if it names none.
  const std::optional<TokenizerInfo>& tokenizer() const { return tokenizer_; }
  /// Position in the stream of the first token of this sample.
  std::int64_t start_of(std::int64_t sample) const;

 private:
  void read(std::int64_t start, std::int64_t column, const TensorView& out) const;

  TokenFile file_;
  std::filesystem::path prefix_;
  std::string checksum_;
  std::optional<TokenizerInfo> tokenizer_;
  std::int64_t sequence_, vocab_;
  std::uint64_t seed_;
};

} // namespace triax::data
