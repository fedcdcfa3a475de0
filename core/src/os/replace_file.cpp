// SPDX-License-Identifier: Apache-2.0
#include "os/replace_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "os/errno_text.hpp"
#include "os/write_all.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, int error) {
  throw Error("cannot be written: " + errno_text(error), file.string(),
              write_hint(error, "free space there, or choose another folder with run.dir"));
}

} // namespace

fs::path temporary_name(const fs::path& file) {
  fs::path out = file;
  out += ".tmp";
  return out;
}

void write_temporary(const fs::path& file, std::string_view content) {
  const fs::path temporary = temporary_name(file);
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(file, errno);
  int error = write_all(descriptor, content);
  // Else the new name may be on the disk before the content when the machine loses its power.
  if (error == 0 && ::fsync(descriptor) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno; // network file systems may report a full disk here
  if (error == 0) return;
  remove_temporary(file);
  fail(file, error);
}

void commit_temporary(const fs::path& file) {
  std::error_code failed;
  fs::rename(temporary_name(file), file, failed);
  if (!failed) return;
  remove_temporary(file);
  fail(file, failed.value());
}

void remove_temporary(const fs::path& file) noexcept {
  ::unlink(temporary_name(file).c_str());
}

void replace_file(const fs::path& file, std::string_view content) {
  write_temporary(file, content);
  commit_temporary(file);
}

} // namespace triax::os
