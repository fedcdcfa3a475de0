// What the proof may assume of those who carry what the ranks send.
//
// Threads: values and pure functions. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstddef>

#include "schedule/rules.hpp"
#include "triax/communicator.hpp"

namespace triax::schedule {

/// Of one backend.
struct Promise {
  CommTraits::Order order = CommTraits::Order::tagged;
  CommTraits::Send send = CommTraits::Send::buffered;
  CommTraits::Post post = CommTraits::Post::nonblocking;
};
inline constexpr Promise kLeastPromise{CommTraits::Order::serial, CommTraits::Send::rendezvous,
                                       CommTraits::Post::blocking};

/// What a backend promises for transfers of up to `largest` bytes.
Promise promise_of(const CommTraits& traits, std::size_t largest);
/// What both promise.
Promise both(const Promise& one, const Promise& other);

/// Each axis may have a backend of its own. Those that keep one order for all calls (`serial`) share one queue: NCCL's
/// is that of the device, whatever the communicator.
struct Assumptions {
  Promise edges;      // of sends and receives
  Promise reductions; // of gradients
  Promise layers;     // what F, B, I and W send inside, and gathers
  const Promise& of(Kind kind) const noexcept {
    if (sends(kind) || receives(kind)) return edges;
    return kind == Kind::reduce_grad ? reductions : layers;
  }
  /// Whether an action of the kind stands in the queue of those that are serial. What ends a step waits for all that is
  /// in it, and needs no place there.
  bool queues(Kind kind) const noexcept {
    return (is_transfer(kind) || runs_layers(kind) || gathers(kind)) && of(kind).order == CommTraits::Order::serial;
  }
};
/// One backend for all of it.
constexpr Assumptions everywhere(const Promise& promise) {
  return {promise, promise, promise};
}

} // namespace triax::schedule
