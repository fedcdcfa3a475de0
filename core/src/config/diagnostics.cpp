// SPDX-License-Identifier: Apache-2.0
#include "config/diagnostics.hpp"

#include <algorithm>
#include <tuple>

namespace triax::config {

void Diagnostics::add(const Position& at, Refusal refusal) {
  std::string text = to_text(refusal, at, {});
  entries_.push_back({at, {std::move(text), std::move(refusal), at}});
}

void Diagnostics::add(const Position& order, Diagnostic diagnostic) {
  entries_.push_back({order, std::move(diagnostic)});
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Entry> ordered = entries_;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Entry& a, const Entry& b) {
    const auto rank = [](const Position& at) { return std::tuple(at.layer, at.line == 0, at.line, at.column); };
    return rank(a.order) < rank(b.order);
  });
  std::vector<Diagnostic> out;
  out.reserve(ordered.size());
  for (Entry& entry : ordered) out.push_back(std::move(entry.diagnostic));
  return out;
}

} // namespace triax::config
