// What turns text into token ids and back.
//
// Threads: a Tokenizer is read-only and may be shared; an Encoder belongs to one thread. Ownership: an encoder borrows
// its tokenizer. Blocking: never, once made. Errors: Error naming the byte, the word or the id.
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

/// No word of a tokenizer that cuts text into words may be longer, in bytes: of each one, all is held at once.
inline constexpr std::size_t kLongestWord = 1 << 20;

/// What an encoder throws for one that is.
Error word_too_long();

class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Appends the ids of a part that was checked; tells how much of it was certain, all of a closed one.
  virtual SplitProgress encode(const TextPart& part, std::vector<std::int32_t>& ids) = 0;
  /// Where an open part may be cut, without encoding it.
  virtual PartCut cut(const TextPart& part) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string kind() const = 0;     // "byte", "bpe"
  virtual std::int64_t vocab() const = 0;   // ids are below it
  virtual bool takes_any_bytes() const = 0; // else UTF-8 alone
  virtual std::optional<std::int32_t> id_of(std::string_view added_token) const = 0;
  virtual std::vector<std::string> added_tokens() const = 0; // by id
  virtual std::unique_ptr<Encoder> encoder() const = 0;
  /// The bytes of one token. Throws Error for an id that is none.
  virtual std::string_view bytes_of(std::int32_t id) const = 0;
  /// What tells two tokenizers apart that give other ids: of what it does, not of how its files are written.
  virtual std::string digest() const = 0;
  /// Its tokenizer.json; empty if its kind says everything.
  virtual const std::string& json() const = 0;

  /// The whole of a text. Throws Error naming the byte if it is not the UTF-8 that it has to be.
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> ids) const;
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();

} // namespace triax::data
