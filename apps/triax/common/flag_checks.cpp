// SPDX-License-Identifier: Apache-2.0
#include "common/flag_checks.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "triax/text.hpp"

namespace triax::app {

namespace {

/// "a, b or c", or with the separators of --help, "a,b,c".
std::string joined(const std::vector<std::string>& names, const char* separator, const char* last) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out += (i == 0 ? "" : i + 1 == names.size() ? last : separator) + names[i];
  return out;
}

} // namespace

CLI::Validator integer_in(long long min, long long max) {
  const auto check = [min, max](const std::string& written) {
    long long value = 0;
    const char* const end = written.data() + written.size();
    const auto [read, error] = std::from_chars(written.data(), end, value);
    if (error == std::errc() && read == end && value >= min && value <= max) return std::string();
    return text("must be an integer in [{}, {}], got \"{}\"", min, max, written);
  };
  return {check, text("INT in [{} - {}]", min, max)};
}

CLI::Validator number_in(double min, double max) {
  const auto check = [min, max](const std::string& written) {
    double value = 0;
    const char* const end = written.data() + written.size();
    const auto [read, error] = std::from_chars(written.data(), end, value);
    // A NaN is in no range.
    if (error == std::errc() && read == end && value >= min && value <= max) return std::string();
    return text("must be a number in [{}, {}], got \"{}\"", min, max, written);
  };
  return {check, text("FLOAT in [{} - {}]", min, max)};
}

CLI::Validator not_empty() {
  return {[](const std::string& written) { return written.empty() ? "must not be empty" : std::string(); }, {}};
}

CLI::Validator existing_folder() {
  const auto check = [](const std::string& written) {
    std::error_code unknown;
    if (std::filesystem::is_directory(written, unknown)) return std::string();
    return text("must be a folder that exists, got \"{}\"", written);
  };
  return {check, "DIR"};
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto check = [names](const std::string& written) {
    if (std::ranges::find(names, written) != names.end()) return std::string();
    return text("must be {}, got \"{}\"", joined(names, ", ", " or "), written);
  };
  return {check, "{" + joined(names, ",", ",") + "}"};
}

} // namespace triax::app
