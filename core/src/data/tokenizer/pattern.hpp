// SPDX-License-Identifier: Apache-2.0
// Regular expressions, with incremental search in a text that may continue.
//
// Threads: a Pattern is read-only and may be shared; a Search belongs to one thread. Ownership: a Search borrows its
// Pattern. Errors: Error with the pattern and the problem.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace triax::data {

class Pattern {
 public:
  /// Syntax: see pattern_syntax.hpp. Throws Error if the pattern matches the empty text.
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

  /// Finds the first match in `text` from `from` on, [begin(), end()). If the text is not `closed`, accepts only a
  /// match that no continuation of the text could change. `text` must be valid UTF-8.
  bool next(std::string_view text, std::size_t from, bool closed);
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::size_t begin_ = 0, end_ = 0;
};

} // namespace triax::data
