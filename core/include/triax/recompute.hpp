// SPDX-License-Identifier: Apache-2.0
// The values of memory.recompute: what transformer blocks compute again before their backward.
//
// Threads: constants and a pure function. Ownership, blocking, errors: none.
#pragma once

#include <cstdint>
#include <string_view>

#include "triax/export.hpp"

namespace triax {

/// The first three in the order of the memory that they save. none: blocks keep their whole stash. cheap: they do not
/// keep what they can compute again without matrix products (triax/cheap_recompute.hpp). full: they keep their inputs
/// only. optimal: each repeats the steps that are chosen for it (triax/recompute_steps.hpp).
enum class Recompute : std::uint8_t { none, cheap, full, optimal };

/// All values.
inline constexpr Recompute kRecomputes[] = {Recompute::none, Recompute::cheap, Recompute::full, Recompute::optimal};
/// The values that planners choose from, ascending.
inline constexpr Recompute kPlannedRecomputes[] = {Recompute::none, Recompute::cheap, Recompute::full};

/// The value of memory.recompute: "none", "cheap", "full" or "optimal".
constexpr std::string_view name_of(Recompute recompute) noexcept {
  switch (recompute) {
    case Recompute::cheap:
      return "cheap";
    case Recompute::full:
      return "full";
    case Recompute::optimal:
      return "optimal";
    default:
      return "none";
  }
}

} // namespace triax
