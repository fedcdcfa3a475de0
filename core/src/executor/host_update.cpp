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
  ReusedBlock *host = nullptr, *device = nullptr; // of the block
  const auto begin_block = [&](std::size_t block) {
    host = &buffers.host[block % HostUpdate::kBuffers];
    device = &buffers.device[block % HostUpdate::kBuffers];
    host->restart();
    device->restart();
  };
  return staged_pieces(layout, shards, begin_block, [&](StagedPiece& piece, std::int64_t count) {
    piece.received = host->tensor(types.master, {count});
    piece.updated = host->tensor(types.working, {count});
    piece.sent = types.rounds() ? host->tensor(types.sent, {count}) : piece.received;
    piece.rounded = types.rounds() ? device->tensor(types.sent, {count}) : piece.gradient;
  });
}

} // namespace

std::vector<StagedPiece> stage_pieces(const OffloadLayout& layout, const StagedTypes& types,
                                      std::span<const ParameterShard> shards, RankMemory& memory) {
  StagingBuffers counted, out;
  stage_in(counted, layout, types, shards);
  for (std::size_t i = 0; i < HostUpdate::kBuffers; ++i) {
    out.host[i] = placed_block(memory.hosted_staging, counted.host[i]);
    out.device[i] = placed_block(memory.offload, counted.device[i]);
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
