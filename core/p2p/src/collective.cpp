// SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include <algorithm>
#include <cstring>

#include "triax/error.hpp"

namespace triax::p2p {

namespace {

constexpr std::size_t kScratchBytes = std::size_t{16} << 20; // approximate limit for the other members' chunks
constexpr std::size_t kUses = 6;
static_assert(sizeof(Signature) + Plan::kWithOpening <= kMaxTwoSegments);

} // namespace

Plan::Plan(int members, bool staged) {
  const auto others = static_cast<std::size_t>(std::max(1, members - 1));
  // Large chunks: ranks that share cores wait for each other less often. When staged, a chunk has buffers in both
  // directions, and its copy should complete before the previous chunk is sent.
  const std::size_t scratch = staged ? kScratchBytes / 2 : kScratchBytes, most = staged ? kStagedPiece : 1 << 20;
  chunk_bytes = std::clamp(scratch / (others * kDepth) / 4096 * 4096, std::size_t{32} << 10, most);
  small_bytes = std::max<std::size_t>((std::size_t{16} << 10) / others, 1 << 10);
}

StreamScratch::StreamScratch(const Stream& of, Device& device, int members, int own_index, const Plan& plan)
    : stream(&of),
      requests(kUses * Plan::kDepth * static_cast<std::size_t>(members)),
      slot_bytes(Arena::aligned(sizeof(Signature) + plan.chunk_bytes)),
      others(members - 1),
      own(own_index) {
  const std::size_t packed_bytes = sizeof(Signature) + plan.small_bytes;
  memory =
      device.allocate(slot_bytes * static_cast<std::size_t>(Plan::kDepth * others) + packed_bytes, MemoryKind::host);
}

CollectiveCall::CollectiveCall(PeerEndpoints& endpoints) : Call(endpoints) {}

Event CollectiveCall::start(const Collective& of, const TensorView& in, const TensorView& out, std::uint64_t sequence,
                            StreamScratch& scratch) {
  signature_.collective = of;
  in_ = in.as<const std::byte>();
  out_ = out.as<std::byte>();
  width_ = static_cast<std::int64_t>(bytes_of(of.dtype));
  sequence_ = sequence;
  scratch_ = &scratch;
  return begin();
}

Request& CollectiveCall::request(Use use, std::int64_t chunk, int member) noexcept {
  const std::int64_t index = (static_cast<std::int64_t>(use) * Plan::kDepth + chunk % Plan::kDepth) * size() + member;
  return scratch_->requests[static_cast<std::size_t>(index)];
}

void CollectiveCall::receive_opening(int member) noexcept {
  receive(request(Use::opening_in, 0, member), member, scratch_->slot(0, member), scratch_->slot_bytes,
          tag(member, Phase::opening));
}

void CollectiveCall::send_opening(int member, const std::byte* data, std::size_t bytes) noexcept {
  Request& sent = request(Use::opening_out, 0, member);
  if (bytes == 0) return send(sent, member, &signature_, sizeof(signature_), tag(rank(), Phase::opening));
  send(sent, member, &signature_, sizeof(signature_), data, bytes, tag(rank(), Phase::opening));
}

std::byte* CollectiveCall::part(std::int64_t chunk, int member) noexcept {
  return scratch_->slot(chunk, member) + sizeof(Signature);
}

bool CollectiveCall::agrees(int member) noexcept {
  Signature theirs;
  std::memcpy(&theirs, scratch_->slot(0, member), sizeof(theirs));
  if (theirs == signature_) return true;
  endpoints_.abort(text(
      "group {}: {} on rank {} does not match {} on rank {}: members must post the same collectives in the same order",
      endpoints_.id(), to_text(of()), endpoints_.world_rank(rank()), to_text(theirs.collective),
      endpoints_.world_rank(member)));
  return false;
}

} // namespace triax::p2p
