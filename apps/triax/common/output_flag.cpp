// SPDX-License-Identifier: Apache-2.0
#include "common/output_flag.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <ostream>
#include <system_error>

#include "common/result_out.hpp"
#include "data/output_file.hpp"
#include "os/errno_text.hpp"
#include "os/folder_access.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

/// Whether the path is a stream of this process, such as /dev/stdout. It must not be replaced: other writers use it.
bool is_stream(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code none;
  for (int links = 0; links < kMaxLinks; ++links) {
    const fs::path folder = fs::weakly_canonical(fs::absolute(file, none).parent_path(), none);
    if (folder.native().starts_with("/proc/")) return true;
    if (!fs::is_symlink(file, none)) return false;
    const fs::path to = fs::read_symlink(file, none);
    file = file.parent_path() / to; // `to` itself if it is absolute
  }
  return false;
}

/// Checks without creating the file, because a subcommand that fails must leave no file. A regular file is first
/// created under another name in its folder.
bool can_be_written(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  if (fs::is_fifo(file, none)) return ::access(file.c_str(), W_OK) == 0; // open and close would end its reader
  const int opened = ::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened >= 0) ::close(opened);
  if (opened >= 0 && !is_replaced(file)) return true;
  return (opened >= 0 || errno == ENOENT) && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

} // namespace

bool is_replaced(const fs::path& file) {
  std::error_code unreadable;
  const fs::file_status there = fs::status(file, unreadable);
  return !is_stream(file) && (!fs::exists(there) || fs::is_regular_file(there));
}

void write_output(const std::string& result, const std::string& file) {
  if (file.empty()) {
    result_out() << result;
    return;
  }
  if (is_replaced(file)) return data::replace_file(file, result);
  std::ofstream out(file, std::ios::binary);
  if (!(out << result) || !out.flush()) throw Error(text("cannot be written: {}", errno_text()), file);
}

std::string output_file_error(const std::string& file) {
  std::error_code unreadable;
  const fs::path path(file), folder = path.has_parent_path() ? path.parent_path() : ".";
  if (path.empty() || fs::is_directory(path, unreadable)) return text("must name a file, got \"{}\"", file);
  if (!fs::is_directory(folder, unreadable)) return text("folder \"{}\" does not exist", folder);
  if (const std::string why = os::why_not_writable(folder); is_replaced(path) && !why.empty())
    return text("{} cannot be written: {}", file, why);
  return can_be_written(path, folder) ? std::string() : text("{} cannot be written: {}", file, errno_text());
}

} // namespace triax::app
