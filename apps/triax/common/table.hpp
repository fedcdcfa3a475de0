// SPDX-License-Identifier: Apache-2.0
// Formats tables and numbers as text.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

namespace triax::app {

/// Rows indented by two spaces; columns padded to their widest entry, two spaces apart. Columns of numbers are aligned
/// to the right; "-" stands for no value. The first row is the heading.
std::string table(std::vector<std::vector<std::string>> rows);

/// "0, 2, 4, 6"; if there are many, the first two and the last: "0, 2 ... 126"
std::string numbers_text(const std::vector<int>& numbers);

/// 10753536 as "10,753,536"
std::string grouped(long long number);

} // namespace triax::app
