// What the proof may assume of those who carry the transfers.
//
// Threads: values and a pure function. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstddef>
#include <span>

#include "triax/communicator.hpp"

namespace triax::schedule {

struct Assumptions {
  CommTraits::Order order = CommTraits::Order::tagged;
  CommTraits::Send send = CommTraits::Send::buffered;
  CommTraits::Post post = CommTraits::Post::nonblocking;
};

/// The least that any of these backends promises for transfers of up to `largest` bytes.
Assumptions assume(std::span<const CommTraits> backends, std::size_t largest);

} // namespace triax::schedule
