#include "data/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "triax/error.hpp"

namespace triax::data {

namespace {

std::string reason() {
  return std::generic_category().message(errno);
}

} // namespace

// Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
InputFile::InputFile(const std::filesystem::path& file, const std::string& hint)
    : file_(file), descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) {
    const bool missing = errno == ENOENT;
    throw Error(missing ? "there is no such file" : "cannot be opened: " + reason(), file.string(),
                missing ? hint : std::string());
  }
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const std::string problem = known ? "is not a regular file" : "cannot be examined: " + reason();
  ::close(descriptor_); // the destructor of a half-made object does not run
  throw Error(problem, file.string(), known ? hint : std::string());
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
  throw Error(text("its bytes from {} on cannot be read: {}", offset, reason()), file_.string());
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t got = read_some(offset + done, out.subspan(done));
    done += got;
    if (got > 0) continue;
    struct stat now {};
    ::fstat(descriptor_, &now);
    throw Error(text("is {} bytes long, and was {} when it was opened: bytes {} to {} are not there", now.st_size,
                     bytes_, offset, offset + out.size()),
                file_.string(), "it was cut off while in use: bring it back whole, then start again");
  }
}

} // namespace triax::data
