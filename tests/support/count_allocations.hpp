// SPDX-License-Identifier: Apache-2.0
// Counts calls of operator new in every program that is linked with count_allocations.cpp.
//
// Threads: any. Tests use differences of the counts.
#pragma once

#include <cstddef>

namespace triax::test {

/// Calls of operator new by this thread.
std::size_t allocations() noexcept;
/// Calls of operator new by all threads.
std::size_t allocations_of_all_threads() noexcept;

/// Bytes that the program holds now, as rounded by the allocator.
std::size_t live_bytes() noexcept;
/// The largest value of live_bytes() since the last restart_peak().
std::size_t peak_bytes() noexcept;
void restart_peak() noexcept;

} // namespace triax::test
