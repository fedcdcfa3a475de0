// SPDX-License-Identifier: Apache-2.0
// The configuration errors of a run, in the order of the files.
#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/load.hpp"

namespace triax::config {

/// Collects the errors while a configuration is loaded.
class Diagnostics {
 public:
  /// "run.toml:5:9: message", with the hint on a separate line.
  void add(const Position& at, Refusal refusal);
  /// Sorted as if it stood at `order`: an error in an included file belongs to the line that includes it.
  void add(const Position& order, Diagnostic diagnostic);
  bool empty() const { return entries_.empty(); }
  /// By layer, line and column. Errors without a line come last, in the order of addition.
  std::vector<Diagnostic> sorted() const;

 private:
  struct Entry {
    Position order;
    Diagnostic diagnostic;
  };
  std::vector<Entry> entries_;
};

/// The refusal with its position in front; `origins` and the hint follow on separate lines.
std::string to_text(const Refusal& refusal, const Position& at, const std::vector<std::string>& origins);

} // namespace triax::config
