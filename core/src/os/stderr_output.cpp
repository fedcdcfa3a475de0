// SPDX-License-Identifier: Apache-2.0
#include "os/stderr_output.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <list>
#include <mutex>
#include <ostream>
#include <streambuf>

namespace triax::os {

namespace {

class StderrBuffer final : public std::streambuf {
 protected:
  int_type overflow(int_type letter) override {
    const char one = traits_type::to_char_type(letter);
    xsputn(&one, 1);
    return traits_type::not_eof(letter);
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (stderr_accepts()) std::fwrite(text, 1, static_cast<std::size_t>(count), stderr);
    return count;
  }
};

} // namespace

bool stderr_accepts() noexcept {
  constexpr int kTimeoutMs = 1000;
  static std::atomic<bool> is_stuck{false};
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  const bool accepts = ::poll(&output, 1, is_stuck ? 0 : kTimeoutMs) != 0; // an error shows when it is written
  is_stuck = !accepts;
  return accepts;
}

std::ostream& new_stderr_stream() {
  static StderrBuffer buffer; // has no state
  static std::mutex mutex;
  static std::list<std::ostream> streams;
  const std::lock_guard lock(mutex);
  return streams.emplace_back(&buffer);
}

} // namespace triax::os
