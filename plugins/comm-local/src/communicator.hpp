// SPDX-License-Identifier: Apache-2.0
// One member of a group: posts calls, and counts the bytes that they move.
//
// Threads: the rank's main thread; abort() from any thread. Ownership: holds one reference to the group_state, and the
// pool of its calls. Blocking: only barrier(), until its deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective.hpp"
#include "exchange.hpp"

namespace triax::comm_local {

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(const Group& group, GroupStateRef group_state, Device& device);
  ~LocalCommunicator() override;

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  /// Calls advance as host tasks of their streams. After an abort, this fails calls that are not yet at the front.
  void progress() noexcept override;

 protected:
  Work do_all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                     ActionId action) override;
  Work do_reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                         ActionId action) override;
  Work do_all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) override;
  Work do_all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) override;
  Work do_broadcast(const TensorView& view, int root, Stream& stream, ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  /// Calls are reused, and live until no stream refers to them. The pool is large from the start, so that differences
  /// in timing between ranks cause no allocation during a step.
  struct Pool {
    GroupStateRef group_state;
    std::vector<std::unique_ptr<Collective>> collectives;
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
  /// Bytes that a call sends from this rank and receives on it.
  struct Bytes {
    std::uint64_t out, in;
  };
  Work post(const Signature& signature, const TensorView& in, const TensorView& out, Bytes bytes, Stream& stream,
            ActionId action);
  Work post_reduction(Kind kind, const TensorView& in, const TensorView& out, Reduce reduce, Bytes bytes,
                      Stream& stream, ActionId action);
  Work refused(ActionId action);
  Port& port(const Transfer& transfer);
  void count(Bytes bytes);

  GroupState& group_state_;
  Device& device_;
  std::shared_ptr<Pool> pool_;
  std::vector<Port> ports_;
  std::size_t most_transfers_ = 4; // largest exchange so far
  std::uint64_t posted_ = 0;       // number of collectives posted
  HostEvent dead_;                 // its failed event is returned for calls posted after an abort
  Event dead_event_;
};

} // namespace triax::comm_local
