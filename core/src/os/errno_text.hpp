// SPDX-License-Identifier: Apache-2.0
// The system's message of an error number, such as "No such file or directory".
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace triax {

inline std::string errno_text(int error = errno) {
  return std::generic_category().message(error);
}

} // namespace triax
