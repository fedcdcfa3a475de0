// A power that some communicators have (Communicator::extension): to be told of a rank's memory before it is moved.
//
// Threads: the rank's main thread. Ownership: the memory outlives the communicator. Blocking: add() may ask a driver.
// Errors: add() throws Error.
#pragma once

#include <cstddef>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// extension(kRegistration) gives a Registration*, or null where the backend has no use for it.
inline constexpr std::string_view kRegistration = "triax.registration";

class TRIAX_API Registration {
 public:
  /// A block of device memory that views of later calls lie in.
  virtual void add(void* data, std::size_t bytes) = 0;

 protected:
  ~Registration() = default;
};

} // namespace triax
