// What every communicator must do: communicator_*.cpp of this folder, built into the tests of each backend with
// TRIAX_COMMUNICATOR as its name. What only one of them promises is tested in its own folder.
//
// Threads, ownership, blocking: as ranks.hpp.
#pragma once

#include <functional>

#include "support/ranks.hpp"

namespace triax::testing {

/// Ranks that communicate through the backend under test.
inline void run_members(const Layout& layout, const std::function<void(Rank&)>& body) {
  run_ranks(layout, body, {TRIAX_COMMUNICATOR, {}});
}

/// In one tensor group.
inline void run_members(int count, const std::function<void(Rank&)>& body) {
  run_members(Layout::ptd(1, count, 1), body);
}

} // namespace triax::testing
