// Token files and the samples drawn from them.
//
// Threads: read-only after opening; any thread. Ownership: maps the files for its lifetime. Blocking: page faults only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "triax/tensor.hpp"

namespace triax::data {

/// What PREFIX.json says of the tokens of PREFIX.bin.
struct TokenizerInfo {
  std::string kind; // "byte"
  std::int64_t vocab = 0;
};

/// Throws Error naming the file and the way to make it ("triax data prepare ...").
TokenizerInfo read_tokenizer_info(const std::filesystem::path& prefix);

/// Megatron's indexed dataset: PREFIX.bin (tokens) and PREFIX.idx (documents). All documents joined are one stream.
class TokenFile {
 public:
  /// Throws Error if a file is missing, cut off, of another format, or disagrees with its index.
  explicit TokenFile(const std::filesystem::path& prefix);
  ~TokenFile();
  TokenFile(TokenFile&&) noexcept;

  std::int64_t tokens() const;
  /// Largest token id in the file (reads all of it once).
  std::int64_t largest() const;
  /// Tokens [offset, offset + out.size()) of the stream.
  void read(std::int64_t offset, std::span<std::int32_t> out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Samples of `sequence` tokens and their successors. A sample is a function of the seed and its running number alone:
/// number n is window n mod N of epoch n / N, in an order drawn for each epoch.
class Dataset {
 public:
  /// Throws Error if the file holds fewer than sequence + 1 tokens, or an id at or above `vocab`.
  Dataset(const std::filesystem::path& prefix, std::int64_t sequence, std::int64_t vocab, std::uint64_t seed);

  std::int64_t samples_per_epoch() const;
  /// Fills tokens and targets, host i32 [s, b], with the samples of these running numbers (b of them).
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) const;

 private:
  TokenFile file_;
  std::int64_t sequence_;
  std::uint64_t seed_;
};

} // namespace triax::data
