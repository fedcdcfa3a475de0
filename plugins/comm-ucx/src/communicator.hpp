// One member of a group: posts calls, and counts the bytes that they move.
//
// Threads: the rank's main thread, but for abort(). Ownership: shares the group's links and the pool of its calls with
// the calls that are still on their streams. Blocking: barrier(), until its deadline; the destructor, for a moment,
// where calls are not complete.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exchange.hpp"
#include "movement.hpp"
#include "reduction.hpp"

namespace comm_ucx {

class UcxCommunicator final : public Communicator {
 public:
  UcxCommunicator(const Group& group, std::shared_ptr<Links> links);
  ~UcxCommunicator() override;

  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;
  /// Calls go on as host tasks of their streams; here an abort is told, and calls that it met before their turn fail.
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
  /// Calls are used again; they live as long as a stream may still know them. There are enough from the start, so that
  /// a run whose ranks meet in another order does not allocate in the middle of a step.
  struct Pool {
    std::shared_ptr<Links> links;
    std::vector<std::unique_ptr<Lane>> lanes;
    std::vector<std::unique_ptr<Reduction>> reductions;
    std::vector<std::unique_ptr<Movement>> movements;
    std::vector<std::unique_ptr<Exchange>> exchanges;
  };
  /// This member's end of an edge.
  struct Port {
    Direction direction;
    int peer, channel;
    std::uint64_t next; // number of the next transfer
  };
  /// What a call moves out of and into this rank.
  struct Bytes {
    std::uint64_t out, in;
  };

  template <class Body>
  void for_queued(Body body);
  template <class Some, class Make>
  Some& idle(std::vector<std::unique_ptr<Some>>& calls, Make make);
  Reduction& idle_reduction();
  Movement& idle_movement();
  Exchange& idle_exchange();
  Lane& lane(const Stream& stream);
  Work post(Collective& call, const Signature& signature, const TensorView& in, const TensorView& out, Bytes bytes,
            Stream& stream, ActionId action);
  Work refused(ActionId action);
  void check_reducible(const TensorView& view) const;
  Port& port(const Transfer& transfer);
  void count(Bytes bytes);

  Links& links_;
  Transport& transport_;
  const Plan plan_;
  std::shared_ptr<Pool> pool_;
  std::vector<Port> ports_;
  std::size_t most_transfers_ = 4; // of one exchange, so far
  std::uint64_t posted_ = 0;       // collectives
  std::uint64_t barriers_ = 0;
  HostEvent dead_; // fails what is posted after an abort
  Event dead_event_;
};

} // namespace comm_ucx
