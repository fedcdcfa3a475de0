// SPDX-License-Identifier: Apache-2.0
// Optional communicator interface (Communicator::extension): registers device memory with the transport before first
// use.
//
// Threads: the rank's main thread. Ownership: the memory outlives the communicator. Blocking: add() may call a driver.
// Errors: add() throws Error.
#pragma once

#include <cstddef>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// Communicator::extension(kRegistration) returns a Registration*, or null if the backend does not register memory.
inline constexpr std::string_view kRegistration = "triax.registration";

class TRIAX_API Registration {
 public:
  /// Registers a block of device memory that later calls will use.
  virtual void add(void* data, std::size_t bytes) = 0;

 protected:
  ~Registration() = default;
};

} // namespace triax
