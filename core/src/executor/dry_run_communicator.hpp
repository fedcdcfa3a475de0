// SPDX-License-Identifier: Apache-2.0
// Communicator of a dry run. The public calls check their arguments as always. A collective is counted for every member
// of the group, a transfer for this member only. Each call completes at once; nothing is transferred.
//
// Threads: the rank's main thread. Ownership: values. Blocking: never. Errors: those of Communicator's public calls.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::executor {

class DryRunCommunicator final : public Communicator {
 public:
  explicit DryRunCommunicator(const Group& group) : Communicator(group) { take(); }

  struct Posted {
    std::vector<CommStats> of_member;    // transfers are counted for this member only, because their peers differ
    std::map<int, std::uint64_t> sent;   // bytes of transfers to each peer, by index
    std::vector<Collective> collectives; // in order; all members must post the same
  };
  /// The calls since the last take().
  Posted take() {
    return std::exchange(posted_,
                         {.of_member = std::vector<CommStats>(group().ranks.size()), .sent = {}, .collectives = {}});
  }

  void progress() noexcept override {}
  void barrier(Deadline) override {}
  void abort(std::string_view) noexcept override {}

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  Posted posted_;
};

} // namespace triax::executor
