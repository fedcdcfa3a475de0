// SPDX-License-Identifier: Apache-2.0
#include "control/job_token.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/descriptor.hpp"
#include "os/errno_text.hpp"
#include "triax/error.hpp"

namespace triax::control {

namespace {

/// Reads at most `most` bytes.
std::string read_start(int descriptor, std::size_t most, const std::string& file) {
  std::string bytes(most, '\0');
  std::size_t there = 0;
  while (there < most) {
    const ssize_t got = ::read(descriptor, bytes.data() + there, most - there);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(text("cannot be read: {}", errno_text()), file);
    if (got == 0) break;
    there += static_cast<std::size_t>(got);
  }
  bytes.resize(there);
  return bytes;
}

} // namespace

JobToken JobToken::make() {
  std::array<unsigned char, 32> random{};
  for (std::size_t there = 0; there < random.size();) {
    const ssize_t got = ::getrandom(random.data() + there, random.size() - there, 0);
    if (got < 0 && errno != EINTR)
      throw Error(text("cannot get random bytes from the system: {}", errno_text()), "job token");
    if (got > 0) there += static_cast<std::size_t>(got);
  }
  std::string secret;
  for (const unsigned char byte : random) secret.append({"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
  return JobToken(secret);
}

// Without O_NONBLOCK, opening a FIFO without a writer blocks indefinitely.
JobToken JobToken::from_file(const std::filesystem::path& file) {
  const os::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!opened)
    throw Error(errno == ENOENT ? "does not exist" : text("cannot be opened: {}", errno_text()), file.string(),
                "launch.token_file names the file with the job token");
  struct stat status {};
  if (::fstat(opened.number(), &status) != 0) throw Error(text("cannot be examined: {}", errno_text()), file.string());
  if (!S_ISREG(status.st_mode)) throw Error("is not a regular file", file.string());
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error("other users can read this file, and the token in it lets them join the job", file.string(),
                text("chmod 600 {}", file.string()));
  std::string line = read_start(opened.number(), kMaxBytes + 2, file.string());
  line.erase(std::min(line.find('\n'), line.size()));
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty())
    throw Error("the first line is empty", file.string(), "write a long random token into it: openssl rand -hex 32");
  if (line.size() > kMaxBytes)
    throw Error(text("the first line is longer than {} bytes", kMaxBytes), file.string(),
                "write a token into it: openssl rand -hex 32");
  return JobToken(line);
}

bool JobToken::matches(std::string_view shown) const noexcept {
  if (!given()) return true;
  if (shown.size() != secret_.size()) return false;
  volatile unsigned char differ = 0; // volatile: the compiler must not leave the loop early
  for (std::size_t i = 0; i < shown.size(); ++i)
    differ = static_cast<unsigned char>(
        differ | (static_cast<unsigned char>(shown[i]) ^ static_cast<unsigned char>(secret_[i])));
  return differ == 0;
}

} // namespace triax::control
