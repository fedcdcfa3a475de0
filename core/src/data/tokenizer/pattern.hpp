// A regular expression, searched for in a text that may go on.
//
// Threads: a Pattern is read-only and may be shared; a Search belongs to one thread. Ownership: owns what PCRE2 makes;
// a Search borrows its Pattern. Blocking: never. Errors: Error naming the pattern and what is wrong with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace triax::data {

class Pattern {
 public:
  /// In the syntax that pattern_syntax.hpp says. What matches the empty text is refused.
  explicit Pattern(std::string_view pattern);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  const std::string& text() const { return text_; }

 private:
  friend class Search;
  struct Impl;
  std::string text_;
  std::unique_ptr<Impl> impl_;
};

class Search {
 public:
  explicit Search(const Pattern& pattern);
  ~Search();
  Search(Search&&) noexcept;

  /// The first match in `text` from `from` on: [begin(), end()). Of a text that is not `closed`, only what no
  /// continuation of it could change is a match. `text` is well-formed UTF-8.
  bool next(std::string_view text, std::size_t from, bool closed);
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::size_t begin_ = 0, end_ = 0;
};

} // namespace triax::data
