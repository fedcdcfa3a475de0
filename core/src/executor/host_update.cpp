// SPDX-License-Identifier: Apache-2.0
#include "executor/host_update.hpp"

#include <algorithm>
#include <utility>

#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

TensorView part_of_shard(const TensorView& view, const OffloadedPiece& piece) {
  return view.slice(0, piece.first, piece.first + piece.count);
}

/// Pieces in reused blocks, one of the host and one of the device for each buffer. Blocks without memory count.
struct StagingBuffers {
  std::array<ReusedBlock, HostUpdate::kBuffers> host, device;
};

std::vector<StagedPiece> stage_in(StagingBuffers& buffers, const OffloadLayout& layout, const StagedTypes& types,
                                  std::span<const ParameterShard> shards) {
  std::vector<StagedPiece> out;
  out.reserve(layout.pieces().size());
  for (std::size_t number = 0; number < layout.blocks().size(); ++number) {
    const OffloadBlock& block = layout.blocks()[number];
    ReusedBlock &host = buffers.host[number % HostUpdate::kBuffers],
                &device = buffers.device[number % HostUpdate::kBuffers];
    host.restart();
    device.restart();
    for (std::size_t i = block.first; i < block.end; ++i) {
      const OffloadedPiece& piece = layout.pieces()[i];
      const ParameterShard& shard = shards[piece.parameter];
      StagedPiece& of = out.emplace_back();
      of.gradient = part_of_shard(shard.gradient, piece);
      of.working = part_of_shard(shard.working, piece);
      of.received = host.tensor(types.master, {piece.count});
      of.updated = host.tensor(types.working, {piece.count});
      of.sent = types.rounds() ? host.tensor(types.sent, {piece.count}) : of.received;
      of.rounded = types.rounds() ? device.tensor(types.sent, {piece.count}) : of.gradient;
    }
  }
  return out;
}

std::byte* base_of(Arena& arena, std::size_t bytes) {
  return bytes == 0 ? nullptr : arena.tensor(DType::u8, {static_cast<std::int64_t>(bytes)}).as<std::byte>();
}

} // namespace

std::vector<StagedPiece> stage_pieces(const OffloadLayout& layout, const StagedTypes& types,
                                      std::span<const ParameterShard> shards, RankMemory& memory) {
  StagingBuffers counted, out;
  stage_in(counted, layout, types, shards);
  for (std::size_t i = 0; i < HostUpdate::kBuffers; ++i) {
    out.host[i] = ReusedBlock(base_of(memory.hosted_staging, counted.host[i].peak()));
    out.device[i] = ReusedBlock(base_of(memory.offload, counted.device[i].peak()));
  }
  return stage_in(out, layout, types, shards);
}

HostUpdate::HostUpdate(Device& device, Stream& compute, const HostKernels& host, std::span<const OffloadBlock> blocks,
                       std::vector<StagedPiece> pieces)
    : device_(device),
      compute_(compute),
      host_(host),
      copies_(device.make_stream("gradients and weights to and from the host")),
      blocks_(blocks),
      pieces_(std::move(pieces)) {
  if (!blocks_.empty()) round_gradients(0, compute_); // loads the code before a program runs, see LazyLoadGuard
}

std::span<const StagedPiece> HostUpdate::pieces_of(std::size_t block) const {
  const OffloadBlock& of = blocks_[block];
  return std::span(pieces_).subspan(of.first, of.end - of.first);
}

/// Gradients of all stages are complete before the first update of a step.
void HostUpdate::acquire(std::size_t block, Deadline deadline) {
  if (block == 0) {
    requested_ = 0;
    copies_->wait(compute_.record());
  }
  for (const std::size_t end = std::min(blocks_.size(), block + kBuffers); requested_ < end; ++requested_)
    request(requested_);
  {
    const ActivityScope phase(ActivityScope::Kind::engine, "waiting for gradients on the host");
    device_.wait(arrived_[block % kBuffers], deadline);
  }
  for (const StagedPiece& piece : pieces_of(block))
    if (piece.sent.dtype() != piece.received.dtype()) host_.device.convert(piece.received, piece.sent, host_.stream);
}

void HostUpdate::round_gradients(std::size_t block, Stream& stream) {
  for (const StagedPiece& piece : pieces_of(block))
    if (piece.rounded.dtype() != piece.gradient.dtype()) device_.convert(piece.rounded, piece.gradient, stream);
}

void HostUpdate::request(std::size_t block) {
  round_gradients(block, *copies_);
  for (const StagedPiece& piece : pieces_of(block)) {
    device_.download(piece.sent, piece.rounded, *copies_);
    traffic_.to_host += piece.sent.bytes();
  }
  arrived_[block % kBuffers] = copies_->record();
}

void HostUpdate::send_weights(std::size_t block) {
  for (const StagedPiece& piece : pieces_of(block)) device_.upload(piece.working, piece.updated, *copies_);
}

void HostUpdate::release(std::size_t block) {
  send_weights(block);
  for (const StagedPiece& piece : pieces_of(block)) traffic_.to_device += piece.updated.bytes();
  const bool is_last = block + 1 == blocks_.size() || blocks_[block + 1].stage != blocks_[block].stage;
  if (is_last) compute_.wait(copies_->record());
}

void HostUpdate::refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline) {
  const std::span<const StagedPiece> pieces = pieces_of(block);
  TRIAX_REQUIRE(shards.size() == pieces.size(), "{} shards of {} pieces", shards.size(), pieces.size());
  copies_->wait(compute_.record());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    host_.device.convert(pieces[i].updated, shards[i].master, host_.stream);
  send_weights(block);
  compute_.wait(copies_->record());
  device_.wait(copies_->record(), deadline); // the next block may use the same buffer
}

} // namespace triax::executor
