// SPDX-License-Identifier: Apache-2.0
#include "control/rank_ranges.hpp"

#include "triax/text.hpp"

namespace triax::control {

namespace {

constexpr int kMaxItems = 10;
constexpr std::size_t kMinRange = 3; // shortest range, in ranks

} // namespace

std::string rank_ranges(const std::vector<int>& ranks) {
  std::string out;
  int items = 0;
  for (std::size_t begin = 0; begin < ranks.size(); ++items) {
    if (items == kMaxItems) return out + text(" and {} more", ranks.size() - begin);
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - begin < kMinRange) end = begin + 1;
    if (begin > 0) out += ", ";
    out += end - begin == 1 ? triax::to_text(ranks[begin]) : text("{}-{}", ranks[begin], ranks[end - 1]);
    begin = end;
  }
  return out;
}

} // namespace triax::control
