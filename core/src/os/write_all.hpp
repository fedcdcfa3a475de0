// SPDX-License-Identifier: Apache-2.0
// Writes all bytes to a descriptor, however many calls that takes.
//
// Threads: any. Ownership: borrows. Blocking: as write() does. Errors: returned.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace triax {

/// 0, or the error number of the write that failed.
inline int write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

} // namespace triax
