// SPDX-License-Identifier: Apache-2.0
#include "common/table.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include "common/printable_line.hpp"

namespace triax::app {

namespace {

struct Column {
  std::size_t width = 0;
  bool figures = true;
};

std::vector<Column> columns_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> out;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    out.resize(std::max(out.size(), rows[row].size()));
    for (std::size_t i = 0; i < rows[row].size(); ++i) {
      const std::string& cell = rows[row][i];
      out[i].width = std::max(out[i].width, cell.size());
      const std::size_t first = cell.starts_with('-') ? 1 : 0;
      const bool digit = cell.size() > first && std::isdigit(static_cast<unsigned char>(cell[first])) != 0;
      const bool figure = digit && std::count(cell.begin(), cell.end(), '.') < 2; // 0.1.0 is a version
      if (row > 0 && !figure && cell != "-") out[i].figures = false;
    }
  }
  return out;
}

} // namespace

std::string table(std::vector<std::vector<std::string>> rows) {
  for (std::vector<std::string>& row : rows)
    for (std::string& cell : row) cell = printable_line(std::move(cell));
  const std::vector<Column> columns = columns_of(rows);
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(columns[i].width - row[i].size(), ' ');
      line += "  " + (columns[i].figures ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string numbers_text(const std::vector<int>& numbers) {
  constexpr std::size_t kMaxShown = 8;
  const std::size_t shown = numbers.size() > kMaxShown ? 2 : numbers.size();
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) out += (i ? ", " : "") + std::to_string(numbers[i]);
  return shown == numbers.size() ? out : out + " ... " + std::to_string(numbers.back());
}

std::string grouped(long long number) {
  std::string out = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    out.insert(static_cast<std::size_t>(at), ",");
  }
  return out;
}

} // namespace triax::app
