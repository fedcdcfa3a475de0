// SPDX-License-Identifier: Apache-2.0
// "SIGTERM": the name of a signal, for messages.
//
// Threads: any. Ownership: values. Blocking: never. Errors: none; a number without a name is shown as it is.
#pragma once

#include <cstring>
#include <string>

#include "triax/text.hpp"

namespace triax {

inline std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name ? text("SIG{}", name) : text("signal {}", signal);
}

} // namespace triax
