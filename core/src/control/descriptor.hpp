// SPDX-License-Identifier: Apache-2.0
// A file descriptor that is closed with its owner.
//
// Threads: one at a time. Ownership: owns the descriptor. Blocking: never. Errors: none.
#pragma once

#include <unistd.h>

#include <utility>

namespace triax::control {

class Descriptor {
 public:
  /// Negative: none, as the calls that open one say it.
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_;
};

} // namespace triax::control
