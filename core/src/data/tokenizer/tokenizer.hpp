// SPDX-License-Identifier: Apache-2.0
// Interface of tokenizers, which convert text to token ids and back.
//
// Threads: a Tokenizer is read-only and may be shared; an Encoder belongs to one thread. Ownership: an encoder borrows
// its tokenizer. Errors: Error with the byte, the word or the id.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/word_splitter.hpp"
#include "triax/error.hpp"

namespace triax::data {

/// Maximum bytes of a word, because an encoder holds a whole word in memory.
inline constexpr std::size_t kMaxWord = 1 << 20;

/// The error of an encoder for a longer word.
Error word_too_long();

class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of a part and returns how much of it was encoded: all of a closed part, and of an open part what
  /// no continuation could change. The text must have been checked.
  virtual SplitProgress encode(const TextPart& part, std::vector<std::int32_t>& ids) = 0;
  /// A position at which an open part may be cut; does not encode it.
  virtual PartCut cut(const TextPart& part) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string kind() const = 0;     // "byte", "bpe"
  virtual std::int64_t vocab() const = 0;   // all ids are below it
  virtual bool takes_any_bytes() const = 0; // false: only UTF-8
  virtual std::optional<std::int32_t> id_of(std::string_view added_token) const = 0;
  virtual std::vector<std::string> added_tokens() const = 0; // in the order of their ids
  virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// The bytes of one token. Throws Error if the id is not used.
  virtual std::string_view bytes_of(std::int32_t id) const = 0;
  /// Differs between tokenizers that give different ids; does not depend on the format of their files.
  virtual std::string digest() const = 0;
  /// Contents of its tokenizer.json; empty if its kind identifies it completely.
  virtual const std::string& json() const = 0;

  /// Encodes a whole text. Throws Error with the byte if the text must be UTF-8 and is not.
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> ids) const;
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();

} // namespace triax::data
