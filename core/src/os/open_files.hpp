// SPDX-License-Identifier: Apache-2.0
// The limit of open files of this process (RLIMIT_NOFILE).
//
// Threads: any; the limit belongs to the process, and processes that it starts inherit it. Ownership: none. Blocking:
// never. Errors: none; the caller compares the limit with what it needs.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace triax::os {

/// Raises the soft limit to `wanted`, or to the hard limit where that is lower. Never lowers it. Returns the soft limit
/// that holds now.
inline rlim_t raise_open_file_limit(rlim_t wanted) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY; // unknown
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlim_t before = std::exchange(limit.rlim_cur, std::min(wanted, limit.rlim_max));
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

} // namespace triax::os
