// What every communicator must do: communicator_*.cpp of this folder, built into the tests of each backend with
// TRIAX_COMMUNICATOR as its name, or with a function of its own that says what ranks communicate through. What only one
// of them promises is tested in its own folder; what a backend says of itself (its traits, its device) decides which
// tests it is asked. A backend that carries memory of GPUs defines TRIAX_CARRIES_DEVICE_MEMORY and links
// triax_fake_cuda: its tests then run on a fake CUDA device where TRIAX_TEST_CUDA_SEED is in the environment.
//
// Threads, ownership, blocking: as ranks.hpp.
#pragma once

#include <cstdlib>
#include <functional>

#include "support/ranks.hpp"
#ifdef TRIAX_CARRIES_DEVICE_MEMORY
#include "support/fake_cuda_device.hpp"
#endif

namespace triax::testing {

/// Whether ranks have devices whose memory the host does not reach.
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

/// Ranks that communicate through the backend under test.
inline void run_members(const Layout& layout, const std::function<void(Rank&)>& body) {
  run_ranks(layout, body, under_test());
}

/// In one tensor group.
inline void run_members(int count, const std::function<void(Rank&)>& body) {
  run_members(Layout::ptd(1, count, 1), body);
}

/// What a test may have to know of the backend before it asks for anything.
struct Promises {
  /// Transfers are told apart by channel: they may pass each other.
  bool channels = false;
  /// Calls go on only when the rank's device is pumped, and compare themselves with those of the other members first.
  /// On a GPU's stream they run as soon as they can, with nobody to compare them.
  bool pumped = false;
};

inline Promises promises() {
  Promises out;
  run_members(1, [&out](Rank& rank) {
    const CommTraits traits = rank.backend().traits();
    out.channels = traits.order == CommTraits::Order::tagged;
    out.pumped = !traits.stream_ordered;
  });
  return out;
}

} // namespace triax::testing
