// SPDX-License-Identifier: Apache-2.0
#include "config/duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>

namespace triax::config {

std::optional<double> seconds_of(std::string_view text) {
  struct Unit {
    char name;
    std::int64_t seconds;
  };
  constexpr std::array<Unit, 4> kUnits = {{{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  constexpr std::int64_t kYear = 366LL * 86400;
  std::int64_t sum = 0;
  std::size_t next = 0; // the largest unit that may follow
  while (!text.empty()) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || count < 0 || count > kYear) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (next < kUnits.size() && (text.empty() || kUnits[next].name != text.front())) ++next;
    if (next == kUnits.size()) return std::nullopt;
    sum += count * kUnits[next++].seconds;
    text.remove_prefix(1);
  }
  if (sum <= 0 || sum > kYear) return std::nullopt;
  return static_cast<double>(sum);
}

} // namespace triax::config
