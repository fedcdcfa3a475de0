// Token files and the samples drawn from them.
//
// Threads: read-only after opening; any thread. Ownership: keeps PREFIX.bin open for its lifetime. Blocking: reads.
// Errors: Error naming the file, also where a file is cut off while it is in use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "triax/tensor.hpp"

namespace triax::data {

/// What PREFIX.json says of the tokens of PREFIX.bin.
struct TokenizerInfo {
  std::string kind; // "byte", "bpe"
  std::int64_t vocab = 0;
  std::string digest; // the same for two tokenizers that give the same ids
};

/// Throws Error naming the file and the way to make it ("triax data prepare ...").
TokenizerInfo read_tokenizer_info(const std::filesystem::path& prefix);

/// A token id and where it stands in the stream.
struct TokenAt {
  std::int64_t position = 0;
  std::int64_t id = 0;
};

/// Megatron's indexed dataset: PREFIX.bin (tokens) and PREFIX.idx (documents). All documents joined are one stream.
/// Ids of up to 32 bits are read as they are; first_outside finds those that are no token of a vocabulary.
class TokenFile {
 public:
  /// Throws Error if a file is missing, cut off, of another format, or disagrees with its index.
  explicit TokenFile(const std::filesystem::path& prefix);
  ~TokenFile();
  TokenFile(TokenFile&&) noexcept;

  std::int64_t tokens() const;
  /// Largest token id in the file, which must have one (reads all of it once).
  std::int64_t largest() const;
  /// The first id that is negative or at least `vocab` (reads all of the file once, if its type allows such ids).
  std::optional<TokenAt> first_outside(std::int64_t vocab) const;
  /// Tokens [offset, offset + out.size()) of the stream.
  void read(std::int64_t offset, std::span<std::int32_t> out) const;
  /// Tokens [offset, offset + count), the i-th to out[i * stride].
  void read(std::int64_t offset, std::int64_t count, std::int32_t* out, std::int64_t stride) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Samples of `sequence` tokens and their successors. A sample is a function of the seed and its running number alone:
/// number n is window n mod N of epoch n / N, in an order drawn for each epoch. Windows of an epoch follow each other
/// from a start drawn for each epoch, so that two epochs cut the stream at other places; neighbours share one token,
/// which is the last target of one and the first token of the other.
class Dataset {
 public:
  /// Throws Error if the file holds fewer than sequence + 1 tokens, or an id at or above `vocab`.
  Dataset(const std::filesystem::path& prefix, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed);

  std::int64_t samples_per_epoch() const;
  /// Fills tokens and targets, host i32 [s, b], with the samples of these running numbers (b of them).
  /// Does not allocate.
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) const;
  /// Fills column `column` of such views, which are taken as they are.
  void fill(std::int64_t sample, std::int64_t column, const TensorView& tokens, const TensorView& targets) const;
  /// Throws Error unless both are host i32 [s, samples].
  void check_views(std::size_t samples, const TensorView& tokens, const TensorView& targets) const;
  std::int64_t tokens() const { return file_.tokens(); }
  /// Where in the stream the window of this sample starts.
  std::int64_t start_of(std::int64_t sample) const;

 private:
  TokenFile file_;
  std::int64_t sequence_;
  std::uint64_t seed_;
};

} // namespace triax::data
