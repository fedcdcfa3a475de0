// SPDX-License-Identifier: Apache-2.0
// Formats numbers with units: 1.2 M, 3.4 GB, 1 h 02 min.
//
// Threads: pure functions.
//
// Unless stated otherwise: three significant digits, decimal multiples (1 kB = 1000 B).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/scaled_text.hpp"

namespace triax::report {

using triax::decimals_text;
/// 0.125 is "12.5 %".
std::string percent_text(double part);
/// "980", "12.3 k", "1.2 M"; whole numbers below 1000 are unchanged.
std::string count_text(double count);
/// "1 plan", "4 plans"; `many` is the plural if it is not `one` and an s.
std::string counted_text(std::int64_t count, std::string_view one, std::string_view many = {});
/// "512 B", "3.4 GB"
std::string bytes_text(std::uint64_t bytes);
/// "340 ms", "12 s", "4 min 02 s", "1 h 02 min", "3 d 04 h"; "?" for an invalid duration (negative, not finite).
std::string duration_text(double seconds);

} // namespace triax::report
