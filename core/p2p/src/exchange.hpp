// SPDX-License-Identifier: Apache-2.0
// A set of sends and receives, directly between the members' buffers. Each transfer gets its number on its edge when it
// is posted, so that the k-th send matches the k-th receive on whatever streams they are. Transfers of staged device
// memory are flows.
//
// Errors: a send and a receive that differ in size or type abort the group.
#pragma once

#include <deque>

#include "call.hpp"
#include "staged_message.hpp"

namespace triax::p2p {

/// A transfer and its number on its edge, from 0.
struct PendingTransfer {
  Transfer transfer;
  std::uint64_t number = 0;
  Request requests[StagedMessage::kBuffers]; // one, or kBuffers for a flow
  StagedMessage flow;
};

class Exchange final : public Call {
 public:
  using Call::Call;

  /// Reserves capacity for this number of transfers; transfers in progress are not moved.
  void reserve(std::size_t transfers);
  void clear() noexcept { count_ = 0; }
  void add(const Transfer& transfer, std::uint64_t number);
  Event start() { return begin(); }
  /// Pinned memory that the transfers need; set_buffers() provides it. Call both before start().
  std::size_t staging_bytes() const noexcept;
  void set_buffers(std::byte* buffers) noexcept;
  /// The library transfers the device memory itself.
  void go_direct() noexcept { side_ = Side::device; }

 private:
  void launch() noexcept override;
  bool run() noexcept override;
  void check_messages() noexcept override;
  std::size_t requests() const noexcept override { return count_ * StagedMessage::kBuffers; }
  Request& request_at(std::size_t index) noexcept override {
    return pending_[index / StagedMessage::kBuffers].requests[index % StagedMessage::kBuffers];
  }
  bool run_flows() noexcept;
  void other_length(const StagedMessage& flow, std::size_t bytes, bool more) noexcept override;
  Tag tag(const PendingTransfer& pending) const noexcept;
  void mismatch(const PendingTransfer& pending, std::size_t bytes, DType dtype, bool more = false) noexcept;

  std::deque<PendingTransfer> pending_; // a deque does not move its elements: the library holds their addresses
  std::size_t count_ = 0;
  bool staged_ = false;
  Side side_ = Side::host;
};

} // namespace triax::p2p
