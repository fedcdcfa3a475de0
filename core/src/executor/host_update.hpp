// SPDX-License-Identifier: Apache-2.0
// Moves gradients to the host and updated weights back, block by block, for an optimizer's state in the memory of the
// host (memory.offload = "optimizer"). Source: Ren et al., "ZeRO-Offload", USENIX ATC'21.
//
// Threads: the rank's main thread. Ownership: owns the copies; borrows devices, kernel set and blocks, and views of the
// rank's memory. Blocking: acquire() and refresh() run the progress loop. Errors: those of the device.
//
// While the host updates a block, the gradients of the next blocks arrive and the weights of the last one leave. Block
// b uses the staging buffer b modulo their number: its gradients arrive after those that were there have been read, and
// after the weights that were there have left.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "executor/host_copies.hpp"
#include "executor/memory.hpp"

namespace triax::executor {

class HostUpdate {
 public:
  static constexpr std::size_t kBuffers = 3; // one arrives, one is updated, one leaves

  /// As HostCopies.
  HostUpdate(Device& device, Stream& compute, const HostKernels& host, std::span<const OffloadBlock> blocks,
             std::vector<StagedPiece> pieces);

  /// Waits until the gradients of a block are on the host, and requests those of the next ones. A step acquires all
  /// blocks in order, and releases each before the next one.
  void acquire(std::size_t block, Deadline deadline);
  /// Sends the updated weights. After the last block of a stage, the compute stream waits for all copies up to now.
  void release(std::size_t block);
  /// See HostCopies.
  /// @{
  void refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline) {
    copies_.refresh(block, shards, deadline);
  }
  const HostTraffic& traffic() const { return copies_.traffic(); }
  /// @}

 private:
  Device& device_;
  HostCopies copies_;
  std::size_t requested_ = 0;             // blocks whose gradients were requested in this step
  std::array<Event, kBuffers> arrived_{}; // complete when the gradients of a buffer are on the host
};

/// Assigns memory to the staged pieces of all blocks, with views without memory while `memory` only counts. `shards`:
/// by index in Parameters::all(), what the rank updates on the device.
std::vector<StagedPiece> stage_pieces(const OffloadLayout& layout, const StagedTypes& types,
                                      std::span<const ParameterShard> shards, RankMemory& memory);

} // namespace triax::executor
