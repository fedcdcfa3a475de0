// SPDX-License-Identifier: Apache-2.0
#include "os/scratch_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "os/errno_text.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::os {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDiskHint = "its file system or disk has failed: the kernel's messages may say why (dmesg)";

/// Opens a new file, and changes `path` to its name.
int open_new(fs::path& path) {
  std::string name = path.string() + ".XXXXXX";
  const int number = ::mkostemp(name.data(), O_CLOEXEC);
  path = name;
  return number;
}

fs::path existing_folder(const fs::path& folder) {
  std::error_code unknown;
  fs::path out = fs::absolute(folder, unknown);
  while (out.has_relative_path() && !fs::exists(out, unknown)) out = out.parent_path();
  return out;
}

} // namespace

ScratchFile::ScratchFile(const fs::path& folder, const std::string& name, std::uint64_t bytes, std::string hint)
    : path_(folder / name), hint_(std::move(hint)), descriptor_(open_new(path_)) {
  if (!descriptor_) fail("cannot be created", 0, errno, hint_);
  ::unlink(path_.c_str());
  if (bytes > 0) allocate(bytes);
}

/// A full disk must end the run before it starts. Where a file system cannot allocate, the file has holes.
void ScratchFile::allocate(std::uint64_t bytes) const {
  int error = 0;
  do {
    error = ::fallocate(descriptor_.number(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == EOPNOTSUPP || error == ENOSYS)
    error = ::ftruncate(descriptor_.number(), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  if (error != 0) fail(text("cannot have {} bytes", bytes), 0, error, hint_);
}

void ScratchFile::fail(const std::string& what, std::uint64_t offset, int error, const std::string& hint) const {
  throw Error(text("{}: {}", what, error == 0 ? "the file has ended" : errno_text(error)),
              text("{}, byte {}", path_.string(), offset), write_hint(error, hint));
}

void ScratchFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_.number(), to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("cannot be read", offset, got < 0 ? errno : 0, kDiskHint);
    to = to.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void ScratchFile::write(std::uint64_t offset, std::span<const std::byte> from) const {
  while (!from.empty()) {
    const ssize_t put = ::pwrite(descriptor_.number(), from.data(), from.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail("cannot be written", offset, put < 0 ? errno : ENOSPC, hint_);
    from = from.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
}

std::uint64_t free_bytes(const fs::path& folder) {
  const fs::path there = existing_folder(folder);
  struct statvfs of {};
  if (::statvfs(there.c_str(), &of) != 0)
    throw Error("its free space cannot be found out: " + errno_text(), there.string());
  return static_cast<std::uint64_t>(of.f_bavail) * of.f_frsize;
}

bool is_in_memory(const fs::path& folder) {
  struct statfs of {};
  if (::statfs(existing_folder(folder).c_str(), &of) != 0) return false;
  return of.f_type == TMPFS_MAGIC || of.f_type == RAMFS_MAGIC;
}

} // namespace triax::os
