// SPDX-License-Identifier: Apache-2.0
// The system's message of an error number, such as "No such file or directory".
#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace triax {

/// With the limit, where the limit of open files is the reason.
inline std::string errno_text(int error = errno) {
  std::string message = std::generic_category().message(error);
  rlimit limit{};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return message;
  return message + " (this process may open " + std::to_string(limit.rlim_cur) + "; ulimit -n)";
}

/// The next step after a failed write: `otherwise`, unless this process may not write files of that size.
inline std::string write_hint(int error, const std::string& otherwise) {
  return error == EFBIG ? "raise the limit of a file's size (ulimit -f)" : otherwise;
}

} // namespace triax
