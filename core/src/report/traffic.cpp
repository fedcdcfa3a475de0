// SPDX-License-Identifier: Apache-2.0
#include "report/traffic.hpp"

#include <algorithm>
#include <array>

#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::report {

void add_traffic(std::vector<GroupTraffic>& sums, const std::vector<GroupTraffic>& of) {
  for (const GroupTraffic& one : of) {
    const auto same = [&one](const GroupTraffic& sum) { return sum.group == one.group && sum.plugin == one.plugin; };
    const auto found = std::ranges::find_if(sums, same);
    if (found == sums.end()) {
      sums.push_back(one);
      continue;
    }
    found->ops += one.ops;
    found->bytes_out += one.bytes_out;
    found->bytes_in += one.bytes_in;
  }
}

std::vector<GroupTraffic> difference(std::vector<GroupTraffic> now, const std::vector<GroupTraffic>& before) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    now[i].ops -= before[i].ops;
    now[i].bytes_out -= before[i].bytes_out;
    now[i].bytes_in -= before[i].bytes_in;
  }
  return now;
}

std::string traffic_text(const std::vector<GroupTraffic>& sums) {
  if (sums.empty()) return {};
  std::array<std::size_t, 3> width{};
  std::vector<std::array<std::string, 3>> rows;
  for (const GroupTraffic& sum : sums) {
    rows.push_back({sum.group, sum.plugin, count_text(static_cast<double>(sum.ops)) + " calls"});
    for (std::size_t i = 0; i < width.size(); ++i) width[i] = std::max(width[i], rows.back()[i].size());
  }
  std::string out = "sent between ranks, sum over all ranks:";
  for (std::size_t at = 0; at < rows.size(); ++at) {
    out += "\n  ";
    for (std::size_t i = 0; i < width.size(); ++i) {
      rows[at][i].resize(width[i] + 2, ' ');
      out += rows[at][i];
    }
    out += bytes_text(sums[at].bytes_out);
  }
  return out;
}

} // namespace triax::report
