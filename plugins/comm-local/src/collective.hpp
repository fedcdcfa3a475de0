// A collective as a state machine: publish the buffers, wait for the others', move the data, tell them, wait until they
// need the buffers no more.
//
// Threads, ownership, blocking: as for calls. The k-th collective of a member meets the k-th of the others, whatever
// streams they are on. A reduction is done by owners: member i reduces the i-th slice over all members, in the order of
// the group; in an all_reduce everybody then copies the slices of the others.
#pragma once

#include <vector>

#include "call.hpp"

namespace comm_local {

class Collective final : public Call {
 public:
  Collective(Hub& hub, int member);

  /// For `sequence`, counted from 1.
  Event start(const Signature& signature, const TensorView& in, const TensorView& out, std::uint64_t sequence);

 private:
  enum class State { publish, meet, gather, finish };

  bool run() noexcept override;
  /// Whether every member has reached `phase` of the call `sequence`, asking each until it has.
  bool all_reached(std::uint64_t sequence, Phase phase) noexcept;
  bool all_agree() noexcept;
  bool agrees(int peer) noexcept;
  bool move() noexcept;
  bool gather() noexcept;
  void move_data() noexcept;
  void reduce(std::int64_t begin, std::int64_t end, std::byte* out) noexcept;
  std::int64_t slice_begin(int member) const noexcept { return signature_.elements * member / hub_.size(); }
  const std::byte* in_of(int member) noexcept { return hub_.entry(member, sequence_).in; }

  Signature signature_;
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::int64_t width_ = 0; // bytes of an element
  State state_ = State::publish;
  int cursor_ = 0; // members before it have reached what is waited for
  std::vector<const std::byte*> sources_;
};

} // namespace comm_local
