// SPDX-License-Identifier: Apache-2.0
// A collective as a state machine: publish the buffers, wait for the other members' buffers, move the data, announce
// it, and wait until no member needs the buffers any more.
//
// The k-th collective of a member matches the k-th of the other members, on whatever streams they are. In a reduction,
// member i reduces slice i over all members, in the order of the group. An all_reduce then copies the other slices.
#pragma once

#include <vector>

#include "local_call.hpp"

namespace triax::comm_local {

class CollectiveCall final : public Call {
 public:
  CollectiveCall(GroupState& group_state, int member);

  /// `sequence` is the number of the collective, counted from 1.
  Event start(const Collective& collective, const TensorView& in, const TensorView& out, std::uint64_t sequence);

 private:
  enum class State { publish, match, gather, finish };

  bool run() noexcept override;
  /// True if every member has reached `phase` of call `sequence`. Starts where the last check stopped (cursor_).
  bool all_reached(std::uint64_t sequence, Phase phase) noexcept;
  bool all_agree() noexcept;
  bool agrees(int peer) noexcept;
  bool move() noexcept;
  bool gather() noexcept;
  void move_data() noexcept;
  void reduce(std::int64_t begin, std::int64_t end, std::byte* out) noexcept;
  std::int64_t slice_begin(int member) const noexcept { return collective_.elements * member / group_state_.size(); }
  const std::byte* in_of(int member) noexcept { return group_state_.entry(member, sequence_).in; }

  Collective collective_;
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::int64_t width_ = 0; // bytes of an element
  State state_ = State::publish;
  int cursor_ = 0; // members below it have passed the current check
  std::vector<const std::byte*> sources_;
};

} // namespace triax::comm_local
