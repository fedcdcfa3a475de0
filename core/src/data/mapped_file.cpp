#include "data/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "triax/error.hpp"

namespace triax::data {

namespace {

/// Closes the file at the end of the scope; a mapping outlives its file descriptor.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::string reason() {
  return std::generic_category().message(errno);
}

} // namespace

MappedFile::MappedFile(const std::filesystem::path& file, const std::string& hint) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const Descriptor descriptor{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (descriptor.number < 0) {
    const bool missing = errno == ENOENT;
    throw Error(missing ? "there is no such file" : "cannot be opened: " + reason(), file.string(),
                missing ? hint : std::string());
  }
  struct stat status {};
  if (::fstat(descriptor.number, &status) != 0) throw Error("cannot be examined: " + reason(), file.string());
  if (!S_ISREG(status.st_mode)) throw Error("is not a regular file", file.string(), hint);
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.number, 0);
  if (mapping == MAP_FAILED) throw Error(text("its {} bytes cannot be mapped: {}", size, reason()), file.string());
  bytes_ = {static_cast<const std::byte*>(mapping), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace triax::data
