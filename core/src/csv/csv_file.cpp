// SPDX-License-Identifier: Apache-2.0
// Reads a CSV file.
#include <cerrno>
#include <cstring>
#include <fstream>

#include "csv/csv_actions.hpp"
#include "os/errno_text.hpp"
#include "triax/text.hpp"

namespace triax::csv {

namespace {

constexpr std::size_t kMaxMiB = 64; // the lowered form of the largest possible step has about 40

} // namespace

std::string read_file(const std::filesystem::path& file, Problems& problems) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string out;
  char block[1 << 16];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    out.append(block, static_cast<std::size_t>(in.gcount()));
    if (out.size() <= kMaxMiB << 20) continue;
    problems.add(text("is larger than {} MiB, the limit of a schedule", kMaxMiB));
    return {};
  }
  if (in.eof()) return out;
  problems.add(text("cannot be read: {}", errno_text()), "name a CSV file of a schedule");
  return {};
}

} // namespace triax::csv
