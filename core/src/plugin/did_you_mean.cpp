// SPDX-License-Identifier: Apache-2.0
// Optimal string alignment distance, because swapped neighbours are the most frequent misspelling.
#include "plugin/did_you_mean.hpp"

#include <algorithm>
#include <utility>

namespace triax::plugin {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replace = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const int most = std::max(1, static_cast<int>(name.size()) / 3);
  std::vector<std::pair<int, std::string>> near;
  for (const auto& candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance > 0 && distance <= most) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : near) {
    if (out.size() < 3) out.push_back(candidate);
  }
  return out;
}

} // namespace triax::plugin
