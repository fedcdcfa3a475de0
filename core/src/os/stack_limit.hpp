// SPDX-License-Identifier: Apache-2.0
// The limit of the stack of this process (RLIMIT_STACK). It holds for the main thread, and glibc gives new threads
// stacks of this size.
//
// Threads: the main thread, before it has others; processes that it starts inherit the limit. Ownership: none.
// Blocking: never. Errors: none; the caller compares the limit with what it needs.
#pragma once

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace triax::os {

/// Raises the soft limit to `wanted` bytes, or to the hard limit where that is lower, and the stacks of new threads to
/// `wanted`. Never lowers them. Returns the soft limit that holds now.
inline rlim_t raise_stack_limit(rlim_t wanted) noexcept {
  pthread_attr_t threads;
  if (::pthread_getattr_default_np(&threads) == 0) {
    std::size_t size = 0;
    if (::pthread_attr_getstacksize(&threads, &size) == 0 && size < wanted &&
        ::pthread_attr_setstacksize(&threads, wanted) == 0)
      ::pthread_setattr_default_np(&threads);
    ::pthread_attr_destroy(&threads);
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0) return RLIM_INFINITY; // unknown
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlim_t before = std::exchange(limit.rlim_cur, std::min(wanted, limit.rlim_max));
  return ::setrlimit(RLIMIT_STACK, &limit) == 0 ? limit.rlim_cur : before;
}

} // namespace triax::os
