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

[[noreturn]] void fail_durable(const std::filesystem::path& path, int error) {
  throw Error("cannot be written: " + errno_text(error), path.string(),
              "free space there, or choose another folder with run.dir");
}

} // namespace

DurableFile::DurableFile(std::filesystem::path file)
    : file_(std::move(file)), descriptor_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (!descriptor_) fail_durable(file_, errno);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  const std::string_view chars(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const int error = write_all(descriptor_.number(), chars)) fail_durable(file_, error);
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
