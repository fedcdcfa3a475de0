// SPDX-License-Identifier: Apache-2.0
// A set of sends and receives as a state machine. A send publishes its buffer on the edge and completes when the
// receiver has copied it; there is no buffering. The transfers of a set complete in any order.
//
// Errors: a send and a receive that differ in size or type abort the group.
#pragma once

#include <vector>

#include "local_call.hpp"

namespace triax::comm_local {

/// A transfer and its number on its edge: the k-th send matches the k-th receive, in the order of posting.
struct PendingTransfer {
  Transfer transfer;
  Edge* edge = nullptr;
  std::uint64_t number = 0; // from 0
  bool published = false, complete = false;
};

class Exchange final : public Call {
 public:
  using Call::Call;

  /// The list to fill before start(). It keeps its capacity between calls.
  std::vector<PendingTransfer>& transfers() noexcept { return transfers_; }
  Event start();

 private:
  bool run() noexcept override;
  void send(PendingTransfer& pending) noexcept;
  void receive(PendingTransfer& pending) noexcept;
  bool fits(const PendingTransfer& pending, const Edge::Send& send) noexcept;

  std::vector<PendingTransfer> transfers_;
  std::size_t open_ = 0;
};

} // namespace triax::comm_local
