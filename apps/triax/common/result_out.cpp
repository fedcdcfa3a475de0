// SPDX-License-Identifier: Apache-2.0
#include "common/result_out.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <streambuf>
#include <string>

#include "os/write_all.hpp"

namespace triax::app {

namespace {

/// Writes to a descriptor when it is flushed.
class DescriptorBuffer final : public std::streambuf {
 public:
  void set_descriptor(int descriptor) { descriptor_ = descriptor; }
  int descriptor() const { return descriptor_; }

 private:
  int_type overflow(int_type character) override {
    if (!traits_type::eq_int_type(character, traits_type::eof())) text_.push_back(traits_type::to_char_type(character));
    return traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    text_.append(text, static_cast<std::size_t>(size));
    return size;
  }
  int sync() override {
    const bool written = write_all(descriptor_, text_) == 0;
    text_.clear();
    return written ? 0 : -1;
  }

  int descriptor_ = STDOUT_FILENO;
  std::string text_;
};

/// Standard output is one per process, like std::cout.
DescriptorBuffer& reserved() {
  static DescriptorBuffer buffer;
  return buffer;
}

bool is_reserved() {
  return reserved().descriptor() != STDOUT_FILENO;
}

} // namespace

std::ostream& result_out() {
  static std::ostream own(&reserved());
  return is_reserved() ? own : std::cout;
}

int result_descriptor() {
  return reserved().descriptor();
}

void reserve_stdout() {
  std::cout.flush();
  const int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (own < 0) return;
  if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    close(own);
    return;
  }
  reserved().set_descriptor(own);
}

} // namespace triax::app
