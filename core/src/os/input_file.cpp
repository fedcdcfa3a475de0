// SPDX-License-Identifier: Apache-2.0
#include "os/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

/// The kind of a file that is not a regular one.
std::string kind_text(mode_t mode) {
  const char* kind = S_ISDIR(mode)    ? "folder"
                     : S_ISFIFO(mode) ? "FIFO"
                     : S_ISSOCK(mode) ? "socket"
                     : S_ISCHR(mode)  ? "character device"
                                      : "block device";
  return text("is a {}, not a regular file", kind);
}

} // namespace

// Without O_NONBLOCK, opening a pipe without a writer would block indefinitely.
InputFile::InputFile(const std::filesystem::path& file, const std::string& hint)
    : file_(file), descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) {
    const int error = errno;
    const std::string problem = why_not_a_file(file);
    throw Error(problem.empty() ? "cannot be opened: " + errno_text(error) : problem, file.string(),
                error == ENOENT || error == ELOOP ? hint : permission_hint(file));
  }
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const std::string problem = known ? kind_text(status.st_mode) : "cannot be examined: " + errno_text();
  ::close(descriptor_); // the destructor does not run if the constructor throws
  throw Error(problem, file.string(), known ? hint : std::string());
}

std::string why_not_a_file(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0) return S_ISREG(status.st_mode) ? std::string() : kind_text(status.st_mode);
  const int error = errno;
  std::error_code not_a_link;
  const std::filesystem::path target = std::filesystem::read_symlink(file, not_a_link);
  if (error == ENOENT && !not_a_link) return text("is a symbolic link to {}, which does not exist", target);
  return error == ENOENT ? "does not exist" : "cannot be opened: " + errno_text(error);
}

std::string permission_hint(const std::filesystem::path& file) {
  const bool refused = ::faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) != 0 && errno == EACCES;
  return refused ? "let this user read the file and search its folders (chmod, chown), or run as its owner" : "";
}

InputFile::InputFile(InputFile&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t InputFile::read_some(std::uint64_t offset, std::span<std::byte> out) const {
  ssize_t got = 0;
  do {
    got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got >= 0) return static_cast<std::size_t>(got);
  throw Error(text("cannot read the bytes from {} on: {}", offset, errno_text()), file_.string());
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t got = read_some(offset + done, out.subspan(done));
    done += got;
    if (got > 0) continue;
    struct stat now {};
    ::fstat(descriptor_, &now);
    throw Error(text("has {} bytes, but had {} when it was opened: bytes {} to {} are missing", now.st_size, bytes_,
                     offset, offset + out.size()),
                file_.string(), "the file was truncated while in use: restore it, then start again");
  }
}

} // namespace triax::os
