// What every communicator must do: communicator_*.cpp of this folder, built into the tests of each backend with
// TRIAX_COMMUNICATOR as its name, or with a function of its own that says what ranks communicate through. What only one
// of them promises is tested in its own folder; what a backend says of itself (its traits, its device) decides which
// tests it is asked.
//
// Threads, ownership, blocking: as ranks.hpp.
#pragma once

#include <functional>

#include "support/ranks.hpp"

namespace triax::testing {

#ifdef TRIAX_COMMUNICATOR
inline Communication communication_under_test() {
  return {TRIAX_COMMUNICATOR, {}};
}
#else
Communication communication_under_test();
#endif

/// Ranks that communicate through the backend under test.
inline void run_members(const Layout& layout, const std::function<void(Rank&)>& body) {
  run_ranks(layout, body, communication_under_test());
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
    out.channels = rank.backend().traits().order == CommTraits::Order::tagged;
    out.pumped = rank.on_host();
  });
  return out;
}

} // namespace triax::testing
