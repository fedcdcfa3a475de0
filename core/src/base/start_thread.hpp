// SPDX-License-Identifier: Apache-2.0
// The error of a thread that the system does not start.
//
// Threads: any. Blocking: never. Errors: Error with the next step.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax {

/// Returns what `start` returns, which starts a thread: std::jthread(...), std::async(...). `thread`: "the signal
/// thread".
template <class Start>
auto start_thread(std::string_view thread, Start start, std::string where = {}) {
  try {
    return start();
  } catch (const std::system_error& error) {
    throw Error(text("cannot start {}: {}", thread, error.code().message()), std::move(where),
                "allow this process more threads (ulimit -u), or end other processes");
  }
}

} // namespace triax
