// Counts what operator new gives: a program that is linked with count_allocations.cpp has all of its own counted.
//
// Threads: any. Ownership: none. Blocking: never. Tests read differences.
#pragma once

#include <cstddef>

namespace triax::testing {

/// Calls of operator new by this thread.
std::size_t allocations() noexcept;
/// And by all threads together.
std::size_t allocations_of_all_threads() noexcept;

/// Bytes that the whole program holds now, as the allocator rounds them.
std::size_t live_bytes() noexcept;
/// The most since the last restart_peak().
std::size_t peak_bytes() noexcept;
void restart_peak() noexcept;

} // namespace triax::testing
