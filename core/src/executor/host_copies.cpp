// SPDX-License-Identifier: Apache-2.0
#include "executor/host_copies.hpp"

#include <utility>

#include "triax/error.hpp"

namespace triax::executor {

std::vector<StagedPiece> staged_pieces(const OffloadLayout& layout, std::span<const ParameterShard> shards,
                                       const std::function<void(std::size_t block)>& begin_block,
                                       const std::function<void(StagedPiece& piece, std::int64_t count)>& place) {
  std::vector<StagedPiece> out;
  out.reserve(layout.pieces().size());
  for (std::size_t number = 0; number < layout.blocks().size(); ++number) {
    begin_block(number);
    const OffloadBlock& block = layout.blocks()[number];
    for (std::size_t i = block.first; i < block.end; ++i) {
      const OffloadedPiece& piece = layout.pieces()[i];
      const ParameterShard& shard = shards[piece.parameter];
      StagedPiece& of = out.emplace_back();
      of.gradient = shard.gradient.slice(0, piece.first, piece.first + piece.count);
      of.working = shard.working.slice(0, piece.first, piece.first + piece.count);
      place(of, piece.count);
    }
  }
  return out;
}

ReusedBlock placed_block(Arena& arena, const ReusedBlock& counted) {
  if (counted.peak() == 0) return {};
  return ReusedBlock(arena.tensor(DType::u8, {static_cast<std::int64_t>(counted.peak())}).as<std::byte>());
}

HostCopies::HostCopies(Device& device, Stream& compute, const HostKernels& host, std::span<const OffloadBlock> blocks,
                       std::vector<StagedPiece> pieces)
    : device_(device),
      compute_(compute),
      host_(host),
      stream_(device.make_stream("gradients and weights to and from the host")),
      blocks_(blocks),
      pieces_(std::move(pieces)) {
  if (!blocks_.empty()) round_gradients(0, compute_); // loads the code before a program runs, see LazyLoadGuard
}

std::span<const StagedPiece> HostCopies::pieces_of(std::size_t block) const {
  const OffloadBlock& of = blocks_[block];
  return std::span(pieces_).subspan(of.first, of.end - of.first);
}

void HostCopies::round_gradients(std::size_t block, Stream& stream) {
  for (const StagedPiece& piece : pieces_of(block))
    if (piece.rounded.dtype() != piece.gradient.dtype()) device_.convert(piece.rounded, piece.gradient, stream);
}

Event HostCopies::request(std::size_t block) {
  round_gradients(block, *stream_);
  for (const StagedPiece& piece : pieces_of(block)) {
    device_.download(piece.sent, piece.rounded, *stream_);
    traffic_.to_host += piece.sent.bytes();
  }
  return stream_->record();
}

void HostCopies::receive(std::size_t block) const {
  for (const StagedPiece& piece : pieces_of(block))
    if (piece.sent.dtype() != piece.received.dtype()) host_.device.convert(piece.received, piece.sent, host_.stream);
}

void HostCopies::upload_weights(std::size_t block) {
  for (const StagedPiece& piece : pieces_of(block)) device_.upload(piece.working, piece.updated, *stream_);
}

void HostCopies::send_weights(std::size_t block) {
  upload_weights(block);
  for (const StagedPiece& piece : pieces_of(block)) traffic_.to_device += piece.updated.bytes();
}

void HostCopies::refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline) {
  const std::span<const StagedPiece> pieces = pieces_of(block);
  TRIAX_REQUIRE(shards.size() == pieces.size(), "{} shards of {} pieces", shards.size(), pieces.size());
  follow_compute();
  for (std::size_t i = 0; i < pieces.size(); ++i)
    host_.device.convert(pieces[i].updated, shards[i].master, host_.stream);
  upload_weights(block);
  precede_compute();
  device_.wait(stream_->record(), deadline); // the next block may use the same buffer
}

} // namespace triax::executor
