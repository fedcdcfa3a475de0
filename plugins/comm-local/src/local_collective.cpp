// SPDX-License-Identifier: Apache-2.0
#include "local_collective.hpp"

#include <cstring>

#include "triax/reduce.hpp"

namespace triax::comm_local {

namespace {

void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) noexcept {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

} // namespace

CollectiveCall::CollectiveCall(GroupState& group_state, int member)
    : Call(group_state, member), sources_(static_cast<std::size_t>(group_state.size()), nullptr) {}

Event CollectiveCall::start(const Collective& collective, const TensorView& in, const TensorView& out,
                            std::uint64_t sequence) {
  collective_ = collective;
  in_ = in.as<const std::byte>();
  out_ = out.as<std::byte>();
  sequence_ = sequence;
  width_ = static_cast<std::int64_t>(bytes_of(collective.dtype));
  state_ = State::publish;
  cursor_ = 0;
  return begin();
}

bool CollectiveCall::run() noexcept {
  switch (state_) {
    case State::publish:
      // The entry was last used kInFlight calls ago; wait until every member has completed that call.
      if (sequence_ > kInFlight && !all_reached(sequence_ - kInFlight, Phase::done)) return false;
      {
        Entry& entry = group_state_.entry(member_, sequence_);
        entry.collective = collective_;
        entry.in = in_;
        entry.out = out_;
      }
      group_state_.publish(member_, sequence_, Phase::posted);
      state_ = State::match;
      [[fallthrough]];
    case State::match:
      if (!all_agree() || !move()) return false;
      group_state_.publish(member_, sequence_, Phase::moved);
      state_ = State::gather;
      [[fallthrough]];
    case State::gather:
      if (collective_.kind == Collective::Kind::all_reduce && !gather()) return false;
      group_state_.publish(member_, sequence_, Phase::done);
      state_ = State::finish;
      [[fallthrough]];
    case State::finish:
      // No member reads from a non-root member of a broadcast.
      if (collective_.kind == Collective::Kind::broadcast && collective_.root != member_) return true;
      return all_reached(sequence_, Phase::done);
  }
  return true;
}

bool CollectiveCall::all_reached(std::uint64_t sequence, Phase phase) noexcept {
  for (; cursor_ < group_state_.size(); ++cursor_) {
    if (!is_reached(cursor_, [&] { return group_state_.reached(cursor_, sequence, phase); })) return false;
  }
  cursor_ = 0;
  return true;
}

bool CollectiveCall::all_agree() noexcept {
  if (collective_.kind == Collective::Kind::broadcast && collective_.root != member_) return agrees(collective_.root);
  for (; cursor_ < group_state_.size(); ++cursor_) {
    if (!agrees(cursor_)) return false;
  }
  cursor_ = 0;
  return true;
}

bool CollectiveCall::agrees(int peer) noexcept {
  if (!is_reached(peer, [&] { return group_state_.reached(peer, sequence_, Phase::posted); })) return false;
  const Collective& theirs = group_state_.entry(peer, sequence_).collective;
  if (theirs == collective_) return true;
  group_state_.abort(text(
      "group {}: {} on rank {} does not match {} on rank {}: members must post the same collectives in the same order",
      group_state_.id(), to_text(collective_), group_state_.world_rank(member_), to_text(theirs),
      group_state_.world_rank(peer)));
  return false;
}

bool CollectiveCall::move() noexcept {
  if (!group_state_.begin_access(member_)) return false;
  move_data();
  group_state_.end_access(member_);
  return true;
}

void CollectiveCall::move_data() noexcept {
  const std::int64_t all = collective_.elements;
  const std::int64_t part = all / group_state_.size();
  switch (collective_.kind) {
    case Collective::Kind::all_reduce:
      return reduce(slice_begin(member_), slice_begin(member_ + 1), out_ + slice_begin(member_) * width_);
    case Collective::Kind::reduce_scatter:
      return reduce(part * member_, part * (member_ + 1), out_);
    case Collective::Kind::all_gather:
      for (int peer = 0; peer < group_state_.size(); ++peer)
        copy_bytes(out_ + peer * all * width_, in_of(peer), all * width_);
      return;
    case Collective::Kind::all_to_all:
      for (int peer = 0; peer < group_state_.size(); ++peer) {
        copy_bytes(out_ + peer * part * width_, in_of(peer) + member_ * part * width_, part * width_);
      }
      return;
    case Collective::Kind::broadcast:
      copy_bytes(out_, in_of(collective_.root), all * width_);
      return;
  }
}

void CollectiveCall::reduce(std::int64_t begin, std::int64_t end, std::byte* out) noexcept {
  if (begin == end) return;
  for (int peer = 0; peer < group_state_.size(); ++peer) {
    sources_[static_cast<std::size_t>(peer)] = in_of(peer) + begin * width_;
  }
  reduce_members(collective_.dtype, collective_.reduce, sources_, out, end - begin);
}

/// Copies the other members' reduced slices. In place, a peer's slice of `out` is also its slice of `in`; the peer has
/// reached `moved`, so it no longer reads it.
bool CollectiveCall::gather() noexcept {
  if (!all_reached(sequence_, Phase::moved) || !group_state_.begin_access(member_)) return false;
  for (int peer = 0; peer < group_state_.size(); ++peer) {
    const std::int64_t begin = slice_begin(peer) * width_, end = slice_begin(peer + 1) * width_;
    if (peer != member_) copy_bytes(out_ + begin, group_state_.entry(peer, sequence_).out + begin, end - begin);
  }
  group_state_.end_access(member_);
  return true;
}

} // namespace triax::comm_local
