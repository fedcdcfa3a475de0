// SPDX-License-Identifier: Apache-2.0
// Cuts text into words (pre-tokens), which limit byte-pair merging, as the `tokenizers` library does: first added
// tokens, then one pattern after another. The text between added tokens may be put into NFC first; of these tokens,
// some are then found in the result. A text may arrive in parts; then only words that no continuation could change are
// cut.
//
// Threads: a WordRules is read-only and may be shared; a WordSplitter belongs to one thread. Ownership: a splitter
// borrows its rules. Memory: constant, but for prefix spaces and NFC, which copy a part. Errors: Error if the search
// for a pattern fails.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/added_tokens.hpp"
#include "data/tokenizer/nfc.hpp"
#include "data/tokenizer/pattern.hpp"

namespace triax::data {

/// GPT-2's pattern, which begins with `'s|'t|'re|...`: https://github.com/openai/gpt-2, encoder.py.
extern const char* const kGpt2Pattern;

/// Digits, one by one or in runs: Rust's char::is_numeric, which the step Digits of `tokenizers` uses. It has Unicode
/// 17, from which the last two ranges are.
inline constexpr const char* kDigit = "[\\p{N}\U00011DE0-\U00011DE9\U00016FF4-\U00016FF6]";
inline constexpr const char* kDigits = "[\\p{N}\U00011DE0-\U00011DE9\U00016FF4-\U00016FF6]+";

/// One step of cutting. Without a pattern, the whole input of the step is one word.
struct WordStep {
  std::optional<Pattern> pattern;
  bool drop_gaps = false;    // text between matches is dropped, and is not a word
  bool prefix_space = false; // a text that does not begin with a space gets one before it is cut
};

class WordRules {
 public:
  WordRules(std::vector<AddedToken> tokens, std::vector<WordStep> steps, bool nfc = false);

 private:
  friend class WordSplitter;
  std::vector<AddedTokens> added_; // applied one after the other
  std::optional<Nfc> nfc_;         // applied before the level nfc_level_ of `added_`
  std::size_t nfc_level_ = 0;
  std::vector<WordStep> steps_;
  bool cut_before_spaces_; // a word always ends between a printable ASCII character and a space
};

class WordSink {
 public:
  virtual ~WordSink() = default;
  virtual void word(std::string_view text) = 0;
  virtual void added(std::int32_t id) = 0;
};

/// A part of a text.
struct TextPart {
  std::string_view text;
  bool begins = true;   // at the start of the text or after an added token
  bool closed = true;   // at the end of the text
  std::size_t skip = 0; // bytes of its NFC that were cut with the part before
};

/// How much of a part was cut, and the `begins` and `skip` of the rest. A word may end inside of a character that NFC
/// changes together with its marks: then that character begins the rest.
struct SplitProgress {
  std::size_t bytes = 0;
  bool begins = true;
  std::size_t skip = 0;
};

/// A position at which an open part may be cut. `closed`: the text before it gives the same words on its own; otherwise
/// only together with the text after it.
struct PartCut {
  SplitProgress done;
  bool closed = false;
};

class WordSplitter {
 public:
  explicit WordSplitter(const WordRules& rules);

  /// Cuts all of a closed part; of an open one, only what no continuation could change. `part.text` must be valid
  /// UTF-8.
  SplitProgress split(const TextPart& part, WordSink& sink);
  /// A position far into an open part; 0 bytes if none is certain.
  PartCut cut(const TextPart& part);

 private:
  SplitProgress level(std::size_t level, const TextPart& part, WordSink& sink);
  SplitProgress normalized(const TextPart& part, WordSink& sink);
  SplitProgress added(std::size_t level, const TextPart& part, WordSink& sink);
  SplitProgress step(std::size_t number, const TextPart& part, WordSink& sink);
  std::size_t pieces(std::size_t number, std::string_view text, bool closed, WordSink& sink);

  struct State {
    std::optional<Search> search;
    std::string prefixed;
  };
  const WordRules* rules_;
  std::vector<State> states_; // of each step
  NfcText nfc_text_;
};

} // namespace triax::data
