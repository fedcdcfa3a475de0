// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes as users write them: 64K, 1MiB, and lists and ranges of them.
//
// Threads: any. Errors: Error with what was written; the hint says what to write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax::bench {

/// The value of "4096", "64K", "1M", "2GiB"; a K is 1024. Empty if it is not such a size, or is 2^50 or more.
std::optional<std::int64_t> find_bytes(std::string_view text);

/// "4K,64K,1M"; or a range, "4K:64M", whose sizes double, or grow by a factor: "4K:64M:4". The last size of a range is
/// at most its second number. In ascending order.
std::vector<std::int64_t> parse_sizes(std::string_view text);

/// 65536 as "64K", 5000 as "5000".
std::string bytes_text(std::int64_t bytes);

} // namespace triax::bench
