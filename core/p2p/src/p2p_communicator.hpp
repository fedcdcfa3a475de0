// SPDX-License-Identifier: Apache-2.0
// One member of a group: posts calls, and counts the bytes that they move.
//
// Threads: the rank's main thread; abort() from any thread. Ownership: shares the group's endpoints and the pool of
// calls with the calls that are still on their streams. Blocking: barrier(), until its deadline; the destructor,
// briefly, if calls are not complete.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data_collectives.hpp"
#include "exchange.hpp"
#include "reduction.hpp"

namespace triax::p2p {

class MessageCommunicator final : public Communicator {
 public:
  MessageCommunicator(const Group& group, std::shared_ptr<PeerEndpoints> endpoints);
  ~MessageCommunicator() override;

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  /// Calls advance as host tasks of their streams. After an abort, this informs the members, and fails calls not yet
  /// started.
  void progress() noexcept override;

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  /// Calls are reused, and live until no stream refers to them. The pool is large from the start, so that differences
  /// in timing between ranks cause no allocation during a step.
  struct Pool {
    std::shared_ptr<PeerEndpoints> endpoints;
    std::vector<std::unique_ptr<StreamScratch>> scratches;
    std::vector<std::unique_ptr<Reduction>> reductions;
    std::vector<std::unique_ptr<Movement>> movements;
    std::vector<std::unique_ptr<Exchange>> exchanges;
  };
  /// This member's end of an edge.
  struct Port {
    Direction direction;
    int peer, channel;
    std::uint64_t next; // number of the next transfer, from 0
  };
  template <class Body>
  void for_queued(Body body);
  template <class Some, class Make>
  Some& idle(std::vector<std::unique_ptr<Some>>& calls, int most, Make make);
  Reduction& idle_reduction();
  Movement& idle_movement();
  Exchange& idle_exchange();
  StreamScratch& scratch_of(const Stream& stream);
  CollectiveCall& idle_call(const Collective& collective);
  Port& port(const Transfer& transfer);

  PeerEndpoints& endpoints_;
  Transport& transport_;
  const Plan plan_;
  const TagLimits limits_;
  std::shared_ptr<Pool> pool_;
  std::vector<Port> ports_;
  std::size_t most_transfers_ = 4; // largest exchange so far
  std::uint64_t posted_ = 0;       // number of collectives posted
  std::uint64_t barriers_ = 0;
};

} // namespace triax::p2p
