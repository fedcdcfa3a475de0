// SPDX-License-Identifier: Apache-2.0
// The backend under test of a communicator's test program: TRIAX_COMMUNICATOR, or what a function under_test() of the
// tests returns. Tests that every communicator must pass are the conformance suite; communicator_conformance.cpp, built
// into each backend's tests, runs it. Each backend's own folder tests what only that backend guarantees. A backend that
// supports GPU memory defines TRIAX_CARRIES_DEVICE_MEMORY and links triax_fake_cuda; its tests then run on a fake CUDA
// device if the environment has TRIAX_TEST_CUDA_SEED. A backend whose ranks cannot be threads defines
// TRIAX_RANKS_ARE_PROCESSES; the ranks of the suite are then processes.
//
// Threads, ownership, blocking: as ranks.hpp.
#pragma once

#include <cstdlib>
#include <functional>

#include "support/ranks.hpp"
#ifdef TRIAX_CARRIES_DEVICE_MEMORY
#include "support/fake_cuda_device.hpp"
#endif

namespace triax::test {

/// True if the ranks' devices have memory that the host cannot access.
inline bool on_fake_cuda() {
#ifdef TRIAX_CARRIES_DEVICE_MEMORY
  return std::getenv("TRIAX_TEST_CUDA_SEED") != nullptr;
#else
  return false;
#endif
}

/// The backend under test, on the device under test.
#ifdef TRIAX_COMMUNICATOR
inline Communication under_test() {
  Communication communication{TRIAX_COMMUNICATOR, {}};
#ifdef TRIAX_CARRIES_DEVICE_MEMORY
  if (const char* file = std::getenv("TRIAX_TEST_PLUGIN")) communication.plugin = file;
  if (const char* seed = std::getenv("TRIAX_TEST_CUDA_SEED")) {
    communication.device = [first = std::strtoull(seed, nullptr, 10)](int index) {
      return test::make_fake_cuda_device(1000 * first + static_cast<std::uint64_t>(index));
    };
  }
#endif
  return communication;
}
#else
Communication under_test();
#endif

/// Runs ranks that communicate through the backend under test.
inline void run_members(const Layout& layout, const std::function<void(Rank&)>& body) {
  run_ranks(layout, body, under_test());
}

/// The same with all ranks in one tensor group.
inline void run_members(int count, const std::function<void(Rank&)>& body) {
  run_members(Layout::ptd(1, count, 1), body);
}

} // namespace triax::test
