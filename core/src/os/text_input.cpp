// SPDX-License-Identifier: Apache-2.0
#include "os/text_input.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/errno_text.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::os {

namespace {

class TextInput {
 public:
  // O_NONBLOCK: without it, opening a FIFO blocks until a writer opens it.
  TextInput(const std::filesystem::path& file, const TextRequest& request)
      : request_(request), descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (descriptor_ < 0) fail(errno, errno == ENOENT ? request.hint_if_missing : std::string());
  }
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;
  ~TextInput() { ::close(descriptor_); }

  std::string read() {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail(errno);
    if (S_ISDIR(status.st_mode))
      throw Error(text("is a folder, not a {}", format_with(" file")), request_.shown, "name a file");
    if (!request_.takes_devices && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)))
      throw Error(text("is a device, not a {}", format_with(" file")), request_.shown, "name a file");
    // A read from a FIFO that no writer has opened yet returns 0, as at the end of the text.
    if (S_ISFIFO(status.st_mode) && !is_anonymous_pipe()) wait();
    std::string out;
    while (read_some(out)) {
      if (out.size() > request_.max_bytes)
        throw Error(text("is larger than {} MiB, the limit of a {}", request_.max_bytes >> 20, format_with(" text")),
                    request_.shown, text("check that this is {}", what_is_expected()));
    }
    return out;
  }

 private:
  /// "TOML file", or "prompt"
  std::string format_with(const char* noun) const {
    return request_.format + std::string(request_.subject ? noun : "");
  }

  std::string what_is_expected() const {
    return request_.subject ? text("the {} of a {}", request_.format, request_.subject) : text("a {}", request_.format);
  }

  bool read_some(std::string& out) const {
    std::array<char, 1 << 14> piece;
    const ssize_t got = ::read(descriptor_, piece.data(), piece.size());
    if (got >= 0) {
      out.append(piece.data(), static_cast<std::size_t>(got));
      return got > 0;
    }
    if (errno == EAGAIN) {
      wait();
    } else if (errno != EINTR) {
      fail(errno);
    }
    return true;
  }

  /// Waits for the next byte, or until the last writer closes the pipe.
  void wait() const {
    pollfd readable{descriptor_, POLLIN, 0};
    const auto deadline = std::chrono::steady_clock::now() + request_.silence;
    int ready = 0;
    do {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      ready = ::poll(&readable, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) fail(errno);
    if (ready == 0)
      throw Error(text("timed out after {} s without data from this pipe",
                       std::chrono::duration<double>(request_.silence).count()),
                  request_.shown, text("check that a program writes the {} into it, or name a file", request_.format));
  }

  bool is_anonymous_pipe() const {
    struct statfs status {};
    return ::fstatfs(descriptor_, &status) == 0 && status.f_type == PIPEFS_MAGIC;
  }

  [[noreturn]] void fail(int error, const std::string& hint = {}) const {
    if (error == ENOENT) throw Error("does not exist", request_.shown, hint.empty() ? "correct the path" : hint);
    throw Error(text("cannot be read: {}", errno_text(error)), request_.shown, hint);
  }

  const TextRequest& request_;
  const int descriptor_;
};

} // namespace

std::string read_text(const std::filesystem::path& file, const TextRequest& request) {
  return TextInput(file, request).read();
}

} // namespace triax::os
