// SPDX-License-Identifier: Apache-2.0
// One member of a group: posts calls, and counts the bytes that they move.
//
// Threads: the rank's main thread; abort() from any thread. Ownership: shares the group's state, and the pool of its
// calls with the calls that are still on their streams. Blocking: only barrier(), until its deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "local_collective.hpp"
#include "local_exchange.hpp"

namespace triax::comm_local {

class LocalCommunicator : public Communicator {
 public:
  LocalCommunicator(const Group& group, std::shared_ptr<GroupState> group_state, Device& device);
  ~LocalCommunicator() override;

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  /// Calls advance as host tasks of their streams. After an abort, this fails calls that are not yet at the front.
  void progress() noexcept override;

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  /// Calls are reused, and live until no stream refers to them. The pool is large from the start, so that differences
  /// in timing between ranks cause no allocation during a step.
  struct Pool {
    std::shared_ptr<GroupState> group_state;
    std::vector<std::unique_ptr<CollectiveCall>> collectives;
    std::vector<std::unique_ptr<Exchange>> exchanges;
  };
  /// This member's end of an edge.
  struct Port {
    Direction direction;
    int peer, channel;
    Edge* edge;
    std::uint64_t next; // number of the next transfer, from 0
  };

  template <class Some>
  void add_calls(std::vector<std::unique_ptr<Some>>& calls, std::size_t count);
  void reserve(std::size_t transfers);
  template <class Some>
  Some& idle(std::vector<std::unique_ptr<Some>>& calls);
  template <class Body>
  void for_queued(Body body);
  Port& port(const Transfer& transfer);

  GroupState& group_state_;
  Device& device_;
  std::shared_ptr<Pool> pool_;
  std::vector<Port> ports_;
  std::size_t most_transfers_ = 4; // largest exchange so far
  std::uint64_t posted_ = 0;       // number of collectives posted
};

} // namespace triax::comm_local
