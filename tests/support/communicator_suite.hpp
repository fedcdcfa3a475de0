// SPDX-License-Identifier: Apache-2.0
// Tests that every communicator must pass: communicator_*.cpp of this folder, built into the tests of each backend. The
// backend is TRIAX_COMMUNICATOR, or what a function under_test() of the backend's tests returns. Each backend's own
// folder tests what only that backend guarantees. A backend's traits and device select the tests that apply. A backend
// that supports GPU memory defines TRIAX_CARRIES_DEVICE_MEMORY and links triax_fake_cuda; its tests then run on a fake
// CUDA device if the environment has TRIAX_TEST_CUDA_SEED.
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

/// Guarantees of the backend that decide which tests apply.
struct Guarantees {
  /// Transfers match by channel: they may overtake each other.
  bool channels = false;
  /// Calls advance only in the progress loop of the rank's device, and compare themselves with the other members' calls
  /// first. On a GPU's stream they run as soon as they can, without a comparison.
  bool needs_progress = false;
};

inline Guarantees guarantees() {
  Guarantees out;
  run_members(1, [&out](Rank& rank) {
    const CommTraits traits = rank.backend().traits();
    out.channels = traits.order == CommTraits::Order::tagged;
    out.needs_progress = !traits.stream_ordered;
  });
  return out;
}

} // namespace triax::test
