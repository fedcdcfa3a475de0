// SPDX-License-Identifier: Apache-2.0
#include "os/durable_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "os/errno_text.hpp"
#include "os/path_names.hpp"
#include "os/write_all.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kWindow = std::uint64_t{8} << 20; // two are in memory
constexpr std::uint64_t kPage = 4096;

[[noreturn]] void fail_durable(const fs::path& path, int error, const std::string& hint = WriteErrorText().hint) {
  throw Error("cannot be written: " + errno_text(error), path.string(), write_hint(error, hint));
}

/// 0, or the error number. Some file systems cannot refuse an existing `to` in the same call.
int try_rename_to_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (is_there(to)) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

fs::path parent_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// The next step for a file that the user named: if its folder is missing, to create it; else `other`.
std::string named_file_hint(int error, const fs::path& file, const std::string& other) {
  std::error_code unknown;
  const bool lacks_folder = error == ENOENT && !fs::exists(parent_of(file), unknown);
  return lacks_folder ? text("create the folder {}, or name a file in an existing folder", parent_of(file)) : other;
}

/// Another process may create a file or folder of the name before this one has written it.
[[noreturn]] void fail_rename(const fs::path& to, int error, const std::string& hint) {
  fail_durable(to, error, error == EEXIST ? "another process has created it: name another" : hint);
}

} // namespace

DurableFile::DurableFile(fs::path file, WriteErrorText errors)
    : file_(std::move(file)),
      errors_(std::move(errors)),
      descriptor_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (!descriptor_) fail(errno);
}

void DurableFile::fail(int error) const {
  if (errors_.file.empty()) fail_durable(file_, error, errors_.hint);
  fail_durable(errors_.file, error, named_file_hint(error, errors_.file, errors_.hint));
}

/// Space that is allocated at once costs less than block by block, and a full disk is found before anything is written.
void DurableFile::reserve(std::uint64_t bytes) {
  int error = 0;
  do {
    error = ::fallocate(descriptor_.number(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) fail(error);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  const std::string_view chars(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const int error = write_all(descriptor_.number(), chars)) fail(error);
  written_ += bytes.size();
  if (written_ - started_ >= kWindow) start_writeback();
}

/// Without it, the kernel keeps gigabytes in memory that training needs, and the disk idles until finish(). Waiting for
/// the window before bounds that memory.
void DurableFile::start_writeback() {
  const std::uint64_t end = written_ - written_ % kPage;
  const auto sync = [this](std::uint64_t from, std::uint64_t to, unsigned how) {
    if (from == to) return; // 0 bytes would mean: up to the end of the file
    const int result =
        ::sync_file_range(descriptor_.number(), static_cast<off_t>(from), static_cast<off_t>(to - from), how);
    if (result == 0) return;
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail(errno); // reported once: finish() would not see it
  };
  sync(started_, end, SYNC_FILE_RANGE_WRITE);
  sync(on_disk_, started_, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  if (on_disk_ < started_)
    ::posix_fadvise(descriptor_.number(), static_cast<off_t>(on_disk_), static_cast<off_t>(started_ - on_disk_),
                    POSIX_FADV_DONTNEED);
  on_disk_ = started_;
  started_ = end;
}

void DurableFile::finish() {
  if (::fsync(descriptor_.number()) != 0) fail(errno);
}

namespace {

std::string partial_begin(const fs::path& path) {
  return text(".{}.partial-", path.filename().string());
}

} // namespace

StagedFile::StagedFile(const fs::path& file, std::string hint)
    : file_(file),
      hidden_(partial_name(file)),
      hint_(std::move(hint)),
      out_(hidden_, {file_, hint_}),
      lock_(lock_partial(hidden_)) {
  remove_abandoned(file_);
}

StagedFile::~StagedFile() {
  if (!committed_) ::unlink(hidden_.c_str());
}

void StagedFile::commit(bool replace) {
  out_.finish();
  int error = 0;
  if (!replace) {
    error = try_rename_to_new(hidden_, file_);
  } else if (::rename(hidden_.c_str(), file_.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) fail_rename(file_, error, hint_);
  committed_ = true; // it has its name, also if what follows fails
  sync_folder(parent_of(file_));
}

void write_durable_file(const fs::path& file, std::string_view content) {
  DurableFile out(file);
  out.write(std::as_bytes(std::span(content.data(), content.size())));
  out.finish();
}

void sync_folder(const fs::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor || ::fsync(descriptor.number()) != 0) fail_durable(folder, errno);
}

Descriptor lock_partial(const fs::path& partial) noexcept {
  Descriptor out(::open(partial.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (out && ::flock(out.number(), LOCK_EX | LOCK_NB) != 0) return Descriptor(-1);
  return out;
}

void remove_abandoned(const fs::path& path) noexcept {
  const std::string begin = partial_begin(path);
  std::error_code unreadable, kept;
  for (fs::directory_iterator entry(parent_of(path), unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    if (!entry->path().filename().native().starts_with(begin)) continue;
    const Descriptor lock = lock_partial(entry->path());
    struct stat status {};
    if (lock && ::fstat(lock.number(), &status) == 0 && status.st_uid == ::geteuid())
      fs::remove_all(entry->path(), kept);
  }
}

// In a container, each process may have the number of one that was killed before.
fs::path partial_name(const fs::path& path) {
  const std::string plain = partial_begin(path) + std::to_string(::getpid());
  fs::path out = path.parent_path() / plain;
  std::error_code unknown;
  for (int number = 2; fs::exists(fs::symlink_status(out, unknown)); ++number)
    out = path.parent_path() / text("{}-{}", plain, number);
  return out;
}

std::string why_name_too_long(const fs::path& path) {
  constexpr std::size_t kNumbers = 16; // of the process, and of the name: at most so many bytes
  const std::size_t name = path.filename().native().size();
  const std::size_t partial = partial_begin(path).size() + kNumbers;
  if (partial <= NAME_MAX) return {};
  return text("File name too long: {} bytes; at most {} are possible here", name, NAME_MAX - (partial - name));
}

void rename_to_new(const fs::path& from, const fs::path& to, const std::string& hint) {
  if (const int error = try_rename_to_new(from, to)) fail_rename(to, error, hint);
  sync_folder(parent_of(to));
}

} // namespace triax::os
