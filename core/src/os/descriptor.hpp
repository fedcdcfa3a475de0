// SPDX-License-Identifier: Apache-2.0
// A file descriptor that its owner closes.
#pragma once

#include <unistd.h>

#include <utility>

namespace triax::os {

class Descriptor {
 public:
  /// A negative number, as open calls return on error, means no descriptor.
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_;
};

} // namespace triax::os
