// SPDX-License-Identifier: Apache-2.0
#include "config/text_file.hpp"

#include <algorithm>
#include <system_error>
#include <vector>

#include "os/text_input.hpp"
#include "plugin/did_you_mean.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

/// "did you mean base.toml?", if the folder has a TOML file with this name or a similar one. The ending is not
/// compared, because all of these files have it.
std::string near_file(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  const std::string name = file.stem().string();
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, unreadable)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  const bool ending = std::find(names.begin(), names.end(), name) != names.end(); // only the ending differs
  const std::vector<std::string> near = ending ? std::vector{name} : plugin::nearest(name, names);
  return near.empty() ? std::string() : text("did you mean {}?", (folder / (near.front() + ".toml")).string());
}

} // namespace

std::string read_text(const std::filesystem::path& file, const std::string& shown, std::chrono::milliseconds silence) {
  std::error_code unknown;
  const bool is_missing = std::filesystem::status(file, unknown).type() == std::filesystem::file_type::not_found;
  const std::string near = is_missing ? near_file(file) : std::string();
  return os::read_text(file, {.shown = shown,
                              .format = "TOML",
                              .subject = "run",
                              .silence = silence,
                              .hint_if_missing = near.empty() ? "correct the path" : near});
}

ErrorCode code_of_unreadable(const std::filesystem::path& file) {
  std::error_code unknown;
  const bool is_missing = std::filesystem::status(file, unknown).type() == std::filesystem::file_type::not_found;
  return is_missing ? ErrorCode::kNotFound : ErrorCode::kNotReadable;
}

bool is_piped(const std::filesystem::path& file) {
  const std::string name = file.lexically_normal().string();
  for (const char* open : {"/dev/fd/", "/proc/self/fd/"})
    if (name.starts_with(open)) return true;
  if (name == "/dev/stdin") return true;
  std::error_code missing;
  const std::filesystem::file_status status = std::filesystem::status(file, missing);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

} // namespace triax::config
