// SPDX-License-Identifier: Apache-2.0
#include "executor/host_update.hpp"

#include <algorithm>
#include <utility>

#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

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
    : device_(device), copies_(device, compute, host, blocks, std::move(pieces)) {}

/// Gradients of all stages are complete before the first update of a step.
void HostUpdate::acquire(std::size_t block, Deadline deadline) {
  if (block == 0) {
    requested_ = 0;
    copies_.follow_compute();
  }
  for (const std::size_t end = std::min(copies_.blocks().size(), block + kBuffers); requested_ < end; ++requested_)
    arrived_[requested_ % kBuffers] = copies_.request(requested_);
  {
    const ActivityScope phase(ActivityScope::Kind::engine, "waiting for gradients on the host");
    device_.wait(arrived_[block % kBuffers], deadline);
  }
  copies_.receive(block);
}

void HostUpdate::release(std::size_t block) {
  copies_.send_weights(block);
  const std::span<const OffloadBlock> blocks = copies_.blocks();
  const bool is_last = block + 1 == blocks.size() || blocks[block + 1].stage != blocks[block].stage;
  if (is_last) copies_.precede_compute();
}

} // namespace triax::executor
