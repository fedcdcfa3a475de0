// SPDX-License-Identifier: Apache-2.0
// The name of the timeout in messages: a measurement has one, --timeout-s, where a run has keys.
//
// Threads: any.
#pragma once

#include <string>

namespace triax::bench {

/// Replaces the keys of a run in a message of the core.
inline std::string with_timeout_flag(std::string message) {
  for (const std::string key : {"train.stall_timeout_s", "launch.start_timeout_s"})
    for (std::size_t at = message.find(key); at != std::string::npos; at = message.find(key))
      message.replace(at, key.size(), "--timeout-s");
  return message;
}

} // namespace triax::bench
