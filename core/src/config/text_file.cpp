// SPDX-License-Identifier: Apache-2.0
#include "config/text_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "os/errno_text.hpp"
#include "plugin/did_you_mean.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

/// "did you mean base.toml?", if the folder has a TOML file with this name or a similar one. The ending is not
/// compared, because all of these files have it.
std::string near_file(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  const std::string name = file.stem().string();
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, unreadable)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  const bool ending = std::find(names.begin(), names.end(), name) != names.end(); // only the ending differs
  const std::vector<std::string> near = ending ? std::vector{name} : plugin::nearest(name, names);
  return near.empty() ? std::string() : text("did you mean {}?", (folder / (near.front() + ".toml")).string());
}

class TextFile {
 public:
  // O_NONBLOCK: without it, opening a FIFO blocks until a writer opens it.
  TextFile(const std::filesystem::path& file, const std::string& shown, const ReadLimits& limits)
      : shown_(shown),
        limits_(limits),
        descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (descriptor_ < 0) fail(errno, errno == ENOENT ? near_file(file) : std::string());
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { ::close(descriptor_); }

  std::string read() {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail(errno);
    if (S_ISDIR(status.st_mode)) throw Error("is a folder, not a TOML file", shown_);
    // A read from a FIFO that no writer has opened yet returns 0, as at the end of the text.
    if (S_ISFIFO(status.st_mode) && !is_anonymous_pipe()) wait();
    std::string out;
    while (read_some(out)) {
      if (out.size() > limits_.bytes)
        throw Error(text("is larger than {} bytes, the limit of a TOML text", limits_.bytes), shown_,
                    "check that this is the TOML of a run");
    }
    return out;
  }

 private:
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
    const auto deadline = std::chrono::steady_clock::now() + limits_.silence;
    int ready = 0;
    do {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      ready = ::poll(&readable, 1, static_cast<int>(std::max<decltype(left)>(left, 0)));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) fail(errno);
    if (ready == 0)
      throw Error(text("timed out after {} s without data from this pipe",
                       std::chrono::duration<double>(limits_.silence).count()),
                  shown_, "check that a program writes the TOML into it, or name a file");
  }

  bool is_anonymous_pipe() const {
    struct statfs status {};
    return ::fstatfs(descriptor_, &status) == 0 && status.f_type == PIPEFS_MAGIC;
  }

  [[noreturn]] void fail(int error, const std::string& hint = {}) const {
    throw Error(text("cannot be read: {}", errno_text(error)), shown_, hint);
  }

  const std::string& shown_;
  const ReadLimits limits_;
  const int descriptor_;
};

} // namespace

std::string read_text(const std::filesystem::path& file, const std::string& shown, const ReadLimits& limits) {
  return TextFile(file, shown, limits).read();
}

bool is_piped(const std::filesystem::path& file) {
  const std::string name = file.lexically_normal().string();
  for (const char* open : {"/dev/fd/", "/proc/self/fd/"})
    if (name.starts_with(open)) return true;
  if (name == "/dev/stdin") return true;
  std::error_code missing;
  const std::filesystem::file_status status = std::filesystem::status(file, missing);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

} // namespace triax::config
