// SPDX-License-Identifier: Apache-2.0
#include "os/durable_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/errno_text.hpp"
#include "os/write_all.hpp"
#include "triax/error.hpp"

namespace triax::os {

namespace {

constexpr std::uint64_t kWindow = std::uint64_t{8} << 20; // two are in memory
constexpr std::uint64_t kPage = 4096;

[[noreturn]] void fail_durable(const std::filesystem::path& path, int error) {
  throw Error("cannot be written: " + errno_text(error), path.string(),
              "free space there, or choose another folder with run.dir");
}

} // namespace

DurableFile::DurableFile(std::filesystem::path file)
    : file_(std::move(file)), descriptor_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (!descriptor_) fail_durable(file_, errno);
}

/// Space that is allocated at once costs less than block by block, and a full disk is found before anything is written.
void DurableFile::reserve(std::uint64_t bytes) {
  int error = 0;
  do {
    error = ::fallocate(descriptor_.number(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) fail_durable(file_, error);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  const std::string_view chars(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const int error = write_all(descriptor_.number(), chars)) fail_durable(file_, error);
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
    if (result != 0 && errno != ENOSYS) fail_durable(file_, errno); // it is reported once: finish() would not see it
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
  if (::fsync(descriptor_.number()) != 0) fail_durable(file_, errno);
}

void write_durable_file(const std::filesystem::path& file, std::string_view content) {
  DurableFile out(file);
  out.write(std::as_bytes(std::span(content.data(), content.size())));
  out.finish();
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor || ::fsync(descriptor.number()) != 0) fail_durable(folder, errno);
}

} // namespace triax::os
