// SPDX-License-Identifier: Apache-2.0
// Moves gradients to the host and updated weights back, block by block, for an optimizer's state in the memory of the
// host (memory.offload = "optimizer"). Source: Ren et al., "ZeRO-Offload", USENIX ATC'21.
//
// Threads: the rank's main thread. Ownership: owns the copy stream; borrows devices, kernel set and blocks, and views
// of the rank's memory. Blocking: acquire() and refresh() run the progress loop. Errors: those of the device.
//
// All copies go through one stream in order. While the host updates a block, the gradients of the next blocks arrive
// and the weights of the last one leave. Block b uses the staging buffer b modulo their number: its gradients arrive
// after those that were there have been read, and after the weights that were there have left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

class HostUpdate {
 public:
  static constexpr std::size_t kBuffers = 3; // one arrives, one is updated, one leaves

  /// `pieces`: of all blocks, in the order of OffloadLayout::pieces(). `compute`: the stream that writes gradients and
  /// reads weights.
  HostUpdate(Device& device, Stream& compute, const HostKernels& host, std::span<const OffloadBlock> blocks,
             std::vector<StagedPiece> pieces);
  HostUpdate(const HostUpdate&) = delete;
  HostUpdate& operator=(const HostUpdate&) = delete;

  /// Waits until the gradients of a block are on the host, and requests those of the next ones. A step acquires all
  /// blocks in order, and releases each before the next one.
  void acquire(std::size_t block, Deadline deadline);
  /// Sends the updated weights. After the last block of a stage, the compute stream waits for all copies up to now.
  void release(std::size_t block);
  /// Makes the weights on the device from `shards`, the master weights of a block. Not within a step.
  void refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline);

  const HostKernels& kernels() const { return host_; }
  /// Since the start.
  const HostTraffic& traffic() const { return traffic_; }

 private:
  std::span<const StagedPiece> pieces_of(std::size_t block) const;
  void round_gradients(std::size_t block, Stream& stream);
  void request(std::size_t block);
  void send_weights(std::size_t block);

  Device& device_;
  Stream& compute_;
  const HostKernels host_;
  const std::unique_ptr<Stream> copies_;
  const std::span<const OffloadBlock> blocks_;
  const std::vector<StagedPiece> pieces_;
  std::size_t requested_ = 0;             // blocks whose gradients were requested in this step
  std::array<Event, kBuffers> arrived_{}; // complete when the gradients of a buffer are on the host
  HostTraffic traffic_;
};

/// Assigns memory to the staged pieces of all blocks, with views without memory while `memory` only counts. `shards`:
/// by index in Parameters::all(), what the rank updates on the device.
std::vector<StagedPiece> stage_pieces(const OffloadLayout& layout, const StagedTypes& types,
                                      std::span<const ParameterShard> shards, RankMemory& memory);

} // namespace triax::executor
