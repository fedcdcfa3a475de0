// SPDX-License-Identifier: Apache-2.0
// The guarantees of communicators that the verifier may rely on.
#pragma once

#include <cstddef>

#include "schedule/rules.hpp"
#include "triax/communicator.hpp"

namespace triax::schedule {

/// Guarantees of one backend.
struct Guarantee {
  CommTraits::Order order = CommTraits::Order::tagged;
  CommTraits::Send send = CommTraits::Send::buffered;
  CommTraits::Post post = CommTraits::Post::nonblocking;
};
inline constexpr Guarantee kMinGuarantee{CommTraits::Order::serial, CommTraits::Send::rendezvous,
                                         CommTraits::Post::blocking};

/// The guarantees of a backend for transfers of up to `largest` bytes.
Guarantee guarantee_of(const CommTraits& traits, std::size_t largest);
/// The guarantees that hold for both.
Guarantee both(const Guarantee& one, const Guarantee& other);

/// Guarantees per class of actions, because each axis may have its own backend. All `serial` backends share one queue:
/// the order of NCCL, for example, applies to all communicators of a device.
struct Assumptions {
  Guarantee edges;      // for sends and receives
  Guarantee reductions; // for gradient reductions and UNSHARD
  Guarantee layers;     // for communication inside F, B, I and W, and for gathers
  const Guarantee& of(Kind kind) const noexcept {
    if (sends(kind) || receives(kind)) return edges;
    return kind == Kind::reduce_grad || kind == Kind::unshard ? reductions : layers;
  }
  /// Whether actions of this kind are in the queue of the serial backends. Actions at the end of a step need no entry,
  /// because they wait for all earlier transfers.
  bool queues(Kind kind) const noexcept {
    return (is_transfer(kind) || runs_layers(kind) || gathers(kind)) && of(kind).order == CommTraits::Order::serial;
  }
};
/// The same guarantees for all actions.
constexpr Assumptions everywhere(const Guarantee& guarantee) {
  return {guarantee, guarantee, guarantee};
}

} // namespace triax::schedule
