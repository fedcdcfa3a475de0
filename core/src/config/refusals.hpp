// SPDX-License-Identifier: Apache-2.0
// The list of what is wrong with a run, kept in the order of the files.
//
// Threads: one. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "config/loaded.hpp"

namespace triax::config {

class Refusals {
 public:
  /// "run.toml:5:9: message", the hint on a line of its own.
  void add(const Position& at, std::string_view message, std::string_view hint = {});
  /// A whole text that begins with its position already.
  void add_text(const Position& at, std::string text);
  bool empty() const { return entries_.empty(); }
  /// By layer, line and column; what has no line comes last, in the order it was added.
  std::vector<Refusal> sorted() const;

 private:
  struct Entry {
    Position at;
    std::string text;
  };
  std::vector<Entry> entries_;
};

} // namespace triax::config
