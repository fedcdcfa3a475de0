// SPDX-License-Identifier: Apache-2.0
// The configuration errors of a run, in the order of the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "config/loaded.hpp"

namespace triax::config {

class Refusals {
 public:
  /// "run.toml:5:9: message", with the hint on a separate line.
  void add(const Position& at, std::string_view message, std::string_view hint = {});
  /// A complete text, which begins with its position.
  void add_text(const Position& at, std::string text);
  bool empty() const { return entries_.empty(); }
  /// By layer, line and column. Errors without a line come last, in the order of addition.
  std::vector<Refusal> sorted() const;

 private:
  struct Entry {
    Position at;
    std::string text;
  };
  std::vector<Entry> entries_;
};

} // namespace triax::config
