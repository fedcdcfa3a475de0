// SPDX-License-Identifier: Apache-2.0
#include "data/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::data {

OutputFile::OutputFile(std::filesystem::path file, Lasting lasting)
    : file_(std::move(file)), buffer_(std::make_unique<char[]>(kBuffer)) {
  if (lasting == Lasting::anonymous) ::unlink(file_.c_str()); // left by a process that was killed before its own unlink
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be created");
  if (lasting == Lasting::anonymous) ::unlink(file_.c_str());
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(const void* data, std::size_t bytes) {
  bytes_ += bytes;
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    if (held_ == kBuffer) flush();
    const std::size_t taken = std::min(bytes, kBuffer - held_);
    std::memcpy(buffer_.get() + held_, from, taken);
    held_ += taken;
    from += taken;
    bytes -= taken;
  }
}

void OutputFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  flush();
  if (::pwrite(descriptor_, data, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes)) {
    fail("cannot be written");
  }
}

void OutputFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) {
  flush();
  if (::pread(descriptor_, data, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes)) {
    fail("cannot be read back");
  }
}

void OutputFile::close() {
  flush();
  // Errors of a full disk may be reported only here. Without fsync(), the file could be lost in a power failure after
  // it was renamed.
  if (::fsync(descriptor_) != 0) fail("cannot be written");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot be written");
}

void OutputFile::flush() {
  for (std::size_t done = 0; done < held_;) {
    const ssize_t wrote = ::write(descriptor_, buffer_.get() + done, held_ - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail("cannot be written");
    done += static_cast<std::size_t>(wrote);
  }
  held_ = 0;
}

void OutputFile::fail(const char* what) const {
  throw Error(text("{}: {}", what, errno_text()), file_.string());
}

void replace_file(const std::filesystem::path& file, std::string_view bytes) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path found = fs::weakly_canonical(file, failure), target = failure ? file : found;
  const fs::path partial = fs::path(target) += ".partial";
  const fs::file_status there = fs::status(target, failure);
  fs::remove(partial, failure); // left by a process that was killed
  try {
    OutputFile out(partial, OutputFile::Lasting::named);
    out.write(bytes.data(), bytes.size());
    out.close();
    if (fs::is_regular_file(there)) fs::permissions(partial, there.permissions());
    fs::rename(partial, target);
  } catch (const fs::filesystem_error& error) {
    fs::remove(partial, failure);
    throw Error(text("cannot be written: {}", error.code().message()), file.string());
  } catch (const Error& error) {
    fs::remove(partial, failure);
    throw Error(error.message(), error.where(), "free space there, or name a file in another folder");
  } catch (...) {
    fs::remove(partial, failure);
    throw;
  }
}

} // namespace triax::data
