// SPDX-License-Identifier: Apache-2.0
// Durations as users write them: "3h50m", "90s", "2d", "1d12h".
//
// Threads: pure function. Errors: returned.
#pragma once

#include <optional>
#include <string_view>

namespace triax::config {

/// Seconds; empty if the text is not whole numbers, each with a unit (d, h, m or s), the largest unit first and each at
/// most once, with a sum above 0 and of at most a year.
std::optional<double> seconds_of(std::string_view text);

} // namespace triax::config
