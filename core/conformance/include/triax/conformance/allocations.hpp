// SPDX-License-Identifier: Apache-2.0
// Counts calls of operator new. A program that uses these functions gets its own operator new, which counts.
//
// Threads: any. Ownership, blocking, errors: none.
#pragma once

#include <cstddef>

namespace triax::conformance {

/// Calls of operator new by this thread, in the program and all its libraries.
std::size_t allocations() noexcept;
/// Calls by all threads.
std::size_t allocations_of_all_threads() noexcept;

} // namespace triax::conformance
