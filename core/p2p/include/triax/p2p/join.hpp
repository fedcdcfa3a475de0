// SPDX-License-Identifier: Apache-2.0
// A communicator over messages: collectives, exchanges and control messages over a Transport.
//
// Sums are in rank order, on the host or, if the transport transfers device memory itself, on the device. Calls are
// matched by tags, so their order over streams is free (CommTraits::Order::tagged).
//
// Threads: the rank's main thread; traits(): any. Ownership: the transport is borrowed, the communicator is the
// caller's. Blocking: join(), until its deadline. Errors: Error.
#pragma once

#include <memory>

#include "triax/communicator.hpp"
#include "triax/p2p/transport.hpp"

namespace triax::p2p {

/// Joins a group: each member publishes its address (triax/rendezvous.hpp), and all connect in the order of the group.
/// They then exchange messages that are acknowledged, so that no connection is made during a step.
///
/// `next`: the lowest group number that this backend has not used; begin at 0. `transport` must outlive the
/// communicator. Blocking: until the deadline; runs the progress loop, and checks the rank's abort flag. Errors: Error
/// that names the missing ranks; ranks that join later get an error that the others have left.
std::unique_ptr<Communicator> join(Transport& transport, const Group& group, Store& store, Deadline deadline,
                                   int& next);

/// The guarantees of such a communicator, for CommBackend::traits().
CommTraits traits(CommTraits::Ranks ranks) noexcept;

} // namespace triax::p2p
