// SPDX-License-Identifier: Apache-2.0
// Reads a CSV file.
#include <chrono>

#include "csv/csv_actions.hpp"
#include "os/text_input.hpp"
#include "triax/error.hpp"

namespace triax::csv {

namespace {

constexpr std::size_t kMaxMiB = 64; // the lowered form of the largest possible step has about 40

} // namespace

std::string read_file(const std::filesystem::path& file, Problems& problems) {
  try {
    return os::read_text(file, {.shown = file.string(),
                                .format = "CSV",
                                .subject = "schedule",
                                .max_bytes = kMaxMiB << 20,
                                .silence = std::chrono::seconds(10), // less than the time of a plugin's call
                                .hint_if_missing = "name a CSV file of a schedule"});
  } catch (const Error& error) {
    problems.add(error.message(), error.hint());
    return {};
  }
}

} // namespace triax::csv
