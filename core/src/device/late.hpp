// What a wait throws at its deadline.
//
// Threads: any. Ownership: none. Blocking: never. Errors: it is one.
#pragma once

#include <string>

#include "triax/error.hpp"

namespace triax {

[[noreturn]] inline void throw_late(const std::string& place) {
  throw Error("not finished at its deadline", place,
              "a peer may be slow, lost, or waiting for something else; train.stall_timeout_s sets the deadline");
}

} // namespace triax
