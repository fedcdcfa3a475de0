// SPDX-License-Identifier: Apache-2.0
#include "config/metrics_check.hpp"

#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace triax::config {

bool is_not_a_metrics_file(const std::filesystem::path& file) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(file, unreadable) || std::filesystem::file_size(file, unreadable) == 0)
    return false;
  constexpr std::string_view kBegin = "{\"step\":";
  std::string begin(kBegin.size(), '\0');
  return !std::ifstream(file).read(begin.data(), static_cast<std::streamsize>(begin.size())) || begin != kBegin;
}

} // namespace triax::config
