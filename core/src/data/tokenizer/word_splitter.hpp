// Cuts text into the words that byte-pair merging stays within, as the `tokenizers` library does: added tokens first,
// then one pattern after another. A text may come in parts: then only what no continuation could change is cut.
//
// Threads: a WordRules is read-only and may be shared; a WordSplitter belongs to one thread. Ownership: a splitter
// borrows its rules. Blocking: never. Memory: constant but for added prefix spaces, which copy a part. Errors: Error of
// a pattern that cannot be searched for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/added_tokens.hpp"
#include "data/tokenizer/pattern.hpp"

namespace triax::data {

/// What follows `'s|'t|'re|...` in GPT-2: https://github.com/openai/gpt-2, encoder.py.
extern const char* const kGpt2Pattern;

/// One step of cutting. Without a pattern, what comes in is one word.
struct WordStep {
  std::optional<Pattern> pattern;
  bool drop_gaps = false;    // what lies between matches is no word, and goes
  bool prefix_space = false; // before cutting, a text that does not begin with a space gets one
};

class WordRules {
 public:
  WordRules(std::vector<AddedToken> tokens, std::vector<WordStep> steps);

 private:
  friend class WordSplitter;
  std::vector<AddedTokens> added_; // one after the other
  std::vector<WordStep> steps_;
  bool cut_before_spaces_; // between a printable ASCII character and a space there is always a boundary
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
  bool begins = true; // it begins the text, or follows an added token
  bool closed = true; // it ends the text
};

/// How far a part was cut, and how what is left goes on.
struct SplitProgress {
  std::size_t bytes = 0;
  bool begins = true;
};

/// A place to cut an open part. If it is `closed`, what lies before it is cut into the same words alone; else only with
/// what follows it.
struct PartCut {
  SplitProgress done;
  bool closed = false;
};

class WordSplitter {
 public:
  explicit WordSplitter(const WordRules& rules);

  /// All of a closed part; of an open one, what is certain. `part.text` is well-formed UTF-8.
  SplitProgress split(const TextPart& part, WordSink& sink);
  /// Far into an open part: nothing is certain if it is 0 bytes.
  PartCut cut(const TextPart& part);

 private:
  SplitProgress added(std::size_t level, const TextPart& part, WordSink& sink);
  SplitProgress step(std::size_t number, const TextPart& part, WordSink& sink);
  std::size_t pieces(std::size_t number, std::string_view text, bool closed, WordSink& sink);

  struct State {
    std::optional<Search> search;
    std::string prefixed;
  };
  const WordRules* rules_;
  std::vector<State> states_; // of each step
};

} // namespace triax::data
