// SPDX-License-Identifier: Apache-2.0
#include "config/diagnostics.hpp"

#include <algorithm>
#include <tuple>

#include "triax/text.hpp"

namespace triax::config {

void Refusals::add(const Position& at, std::string_view message, std::string_view hint) {
  const std::string where = to_text(at);
  std::string whole = where.empty() ? std::string(message) : where + ": " + std::string(message);
  if (!hint.empty()) whole.append("\n  ").append(hint);
  add_text(at, std::move(whole));
}

void Refusals::add_text(const Position& at, std::string text) {
  entries_.push_back({at, std::move(text)});
}

std::vector<Refusal> Refusals::sorted() const {
  std::vector<Entry> ordered = entries_;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Entry& a, const Entry& b) {
    const auto rank = [](const Position& at) { return std::tuple(at.layer, at.line == 0, at.line, at.column); };
    return rank(a.at) < rank(b.at);
  });
  std::vector<Refusal> out;
  out.reserve(ordered.size());
  for (Entry& entry : ordered) out.push_back({std::move(entry.text)});
  return out;
}

} // namespace triax::config
