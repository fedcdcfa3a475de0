// SPDX-License-Identifier: Apache-2.0
#include "bench/byte_sizes.hpp"

#include <charconv>

#include "base/printable.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::bench {

namespace {

constexpr std::string_view kUnits = "KMG"; // 1024, 1024^2, 1024^3
constexpr std::int64_t kMaxSize = std::int64_t{1} << 50;
constexpr std::size_t kMaxSizes = 64;
constexpr const char* kSizesHint = "write sizes as 4K,64K,1M, or a range 4K:64M whose sizes double, or 4K:64M:4";

/// The shift of a unit: 10 for "K" and "KiB", 0 for none and "B"; -1 for another text.
int shift_of(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  const std::size_t found = kUnits.find(unit.front());
  if (found == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "iB")) return -1;
  return 10 * (static_cast<int>(found) + 1);
}

std::int64_t size_in(std::string_view written) {
  const std::optional<std::int64_t> size = find_bytes(written);
  if (!size || *size == 0) throw Error(text("\"{}\" is not a size", shortened(std::string(written))), {}, kSizesHint);
  return *size;
}

std::vector<std::string_view> split_at(std::string_view list, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t end = list.find(separator); end != std::string_view::npos; end = list.find(separator)) {
    out.push_back(list.substr(0, end));
    list.remove_prefix(end + 1);
  }
  out.push_back(list);
  return out;
}

std::vector<std::int64_t> sizes_of_range(const std::vector<std::string_view>& parts, std::string_view written) {
  const std::int64_t first = size_in(parts[0]), last = size_in(parts[1]);
  std::int64_t factor = 2;
  if (parts.size() == 3) {
    const auto [end, error] = std::from_chars(parts[2].begin(), parts[2].end(), factor);
    if (error != std::errc() || end != parts[2].end() || factor < 2 || factor > 1024)
      throw Error(text("\"{}\" is not a factor in [2, 1024]", shortened(std::string(parts[2]))), {}, kSizesHint);
  }
  if (first > last)
    throw Error(text("the range \"{}\" has no sizes: {} is more than {}", written, parts[0], parts[1]), {}, kSizesHint);
  std::vector<std::int64_t> out;
  for (std::int64_t size = first; size <= last; size *= factor) out.push_back(size);
  return out;
}

} // namespace

std::optional<std::int64_t> find_bytes(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  const int shift = shift_of(text.substr(static_cast<std::size_t>(end - text.begin())));
  if (shift < 0 || value >= (kMaxSize >> shift)) return std::nullopt;
  return value << shift;
}

std::vector<std::int64_t> parse_sizes(std::string_view text) {
  const std::vector<std::string_view> range = split_at(text, ':');
  if (range.size() == 2 || range.size() == 3) return sizes_of_range(range, text);
  std::vector<std::int64_t> out;
  for (const std::string_view size : split_at(text, ',')) {
    out.push_back(size_in(size));
    if (out.size() > 1 && out.back() <= out[out.size() - 2])
      throw Error(triax::text("the sizes \"{}\" are not in ascending order", shortened(std::string(text))), {},
                  kSizesHint);
  }
  if (out.size() > kMaxSizes)
    throw Error(triax::text("{} sizes are too many; at most {} are allowed", out.size(), kMaxSizes), {}, kSizesHint);
  return out;
}

std::string bytes_text(std::int64_t bytes) {
  std::size_t unit = 0;
  for (; unit < kUnits.size() && bytes >= 1024 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return unit == 0 ? text("{}", bytes) : text("{}{}", bytes, kUnits[unit - 1]);
}

} // namespace triax::bench
