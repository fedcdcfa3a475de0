// SPDX-License-Identifier: Apache-2.0
// Copies of gradients to the host and of updated weights back, for an optimizer's state in the memory of the host
// (memory.offload = "optimizer").
//
// Threads: the rank's main thread; receive(): any, one at a time. Ownership: owns the copy stream; borrows devices,
// kernel set and blocks, and views of the rank's memory. Blocking: only refresh(). Errors: those of the device.
//
// All copies go through one stream in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/memory.hpp"
#include "executor/offload_layout.hpp"
#include "triax/device.hpp"
#include "triax/kernels.hpp"
#include "triax/optimizer.hpp"

namespace triax::executor {

/// The objects with which the optimizer computes on the host, and memory for temporary values.
struct HostKernels {
  KernelSet& kernels;
  Device& device;
  Stream& stream;
};

/// Bytes that move in a step over the link between a device and its host.
struct HostTraffic {
  std::uint64_t to_host = 0, to_device = 0;
  bool operator==(const HostTraffic&) const = default;
};

/// A piece of an offload block, on the device and in a staging buffer.
struct StagedPiece {
  TensorView gradient, working; // on the device
  TensorView rounded, sent;     // gradients in the type that is sent: on the device, and on the host
  TensorView received, updated; // on the host: gradients in the master type, and weights that layers will read
};

/// The types of staged pieces. If gradients are sent as they are, nothing is rounded.
struct StagedTypes {
  DType master = DType::f32, working = DType::bf16, sent = DType::f32;
  bool rounds() const { return sent != master; }
};

/// The pieces of all blocks, in the order of OffloadLayout::pieces(), with views of `shards`, which are by index in
/// Parameters::all(). `begin_block` is called before the pieces of a block; `place` assigns the staging buffers of a
/// piece of `count` elements.
std::vector<StagedPiece> staged_pieces(const OffloadLayout& layout, std::span<const ParameterShard> shards,
                                       const std::function<void(std::size_t block)>& begin_block,
                                       const std::function<void(StagedPiece& piece, std::int64_t count)>& place);

/// A reused block in the arena, as large as `counted` has needed.
ReusedBlock placed_block(Arena& arena, const ReusedBlock& counted);

class HostCopies {
 public:
  /// `pieces`: of all blocks, in the order of OffloadLayout::pieces(). `compute`: the stream that writes gradients and
  /// reads weights.
  HostCopies(Device& device, Stream& compute, const HostKernels& host, std::span<const OffloadBlock> blocks,
             std::vector<StagedPiece> pieces);
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  /// Later copies start after the current work of the compute stream.
  void follow_compute() { stream_->wait(compute_.record()); }
  /// Later work of the compute stream starts after the copies up to now.
  void precede_compute() { compute_.wait(stream_->record()); }

  /// Requests the gradients of a block. The event fires when they are on the host.
  Event request(std::size_t block);
  /// Once they are: makes them of the master type.
  void receive(std::size_t block) const;
  /// Sends the updated weights of a block.
  void send_weights(std::size_t block);
  /// Makes the weights on the device from `shards`, the master weights of a block. Not within a step.
  void refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline);

  std::span<const OffloadBlock> blocks() const { return blocks_; }
  std::span<const StagedPiece> pieces() const { return pieces_; }
  std::span<const StagedPiece> pieces_of(std::size_t block) const;
  const HostKernels& host() const { return host_; }
  Stream& stream() { return *stream_; }
  /// Since the start, of optimizer steps.
  const HostTraffic& traffic() const { return traffic_; }

 private:
  void round_gradients(std::size_t block, Stream& stream);
  void upload_weights(std::size_t block);

  Device& device_;
  Stream& compute_;
  const HostKernels host_;
  const std::unique_ptr<Stream> stream_;
  const std::span<const OffloadBlock> blocks_;
  const std::vector<StagedPiece> pieces_;
  HostTraffic traffic_;
};

} // namespace triax::executor
