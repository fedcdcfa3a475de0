// SPDX-License-Identifier: Apache-2.0
// Optional communicator interface: registers device memory with the transport before its first use.
//
// Threads: the rank's main thread. Ownership: the memory outlives the communicator. Blocking: add() may call a driver.
// Errors: add() throws Error.
#pragma once

#include <cstddef>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Optional interface of communicators: registers device memory with the transport.
class TRIAX_API Registration {
 public:
  static constexpr std::string_view kExtension = "triax.registration";
  /// Registers a block of device memory that later calls will use.
  virtual void add(void* data, std::size_t bytes) = 0;

 protected:
  ~Registration() = default;
};

} // namespace triax
