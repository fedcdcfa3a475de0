// SPDX-License-Identifier: Apache-2.0
// Sizes of memory as users write them: "80GiB", "1.5 GB", "4096 B".
//
// Threads: pure function. Errors: returned.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace triax::config {

/// Bytes; empty if the text is not a number above 0 and a unit: B, kB to PB (powers of 1000) or KiB to PiB (powers of
/// 1024). At most kMaxSize.
std::optional<std::uint64_t> bytes_of(std::string_view text);
inline constexpr std::string_view kMaxSize = "1000 PB"; // 1e18 B

/// Whether bytes_of() is empty because the size is more than kMaxSize.
bool is_too_large(std::string_view text);

} // namespace triax::config
