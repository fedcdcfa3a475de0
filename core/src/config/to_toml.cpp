// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/printable.hpp"
#include "config/load.hpp"

namespace triax::config {

namespace {

/// A comment must be one line, but file names can contain newlines.
std::string comment(const std::string& origin) {
  std::string line = origin;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return printable(line);
}

} // namespace

std::string to_toml(const LoadResult& loaded) {
  std::string out =
      "# A run with all its values, and where each came from. Paths within this folder are relative to it: a copy of "
      "the\n"
      "# folder trains in the copy.\n";
  std::string open; // the table that is being written
  std::size_t width = 0;
  for (const ResolvedValue& value : loaded.values) {
    const std::size_t key = value.key.size() - value.key.rfind('.') - 1;
    width = std::max(width, std::min<std::size_t>(key + 3 + value.portable.size(), 60));
  }
  for (const ResolvedValue& value : loaded.values) {
    if (value.key == "log.metrics" && value.origin == "default") continue; // derived from run.dir
    // These two apply to one start of the run.
    if (value.key == "checkpoint.resume" || value.key == "checkpoint.changed_data") continue;
    const std::size_t dot = value.key.rfind('.');
    const std::string table = value.key.substr(0, dot);
    if (table != open) out.append("\n[").append(table).append("]\n");
    open = table;
    std::string line = value.key.substr(dot + 1) + " = " + value.portable;
    line.resize(std::max(line.size(), width), ' ');
    out.append(line).append("  # ").append(comment(value.origin)).append("\n");
  }
  return out;
}

} // namespace triax::config
