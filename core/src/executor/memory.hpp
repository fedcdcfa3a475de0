// SPDX-License-Identifier: Apache-2.0
// The memory of a rank: one arena per purpose. Sizes are counted first; then all memory is allocated once, before the
// first step.
//
// Threads: the rank's main thread. Ownership: owns the blocks; views point into them. Blocking: only allocated()
// allocates. Callers assign memory to their tensors twice in the same order: in a counting memory, whose views have no
// data, and in the memory allocated from it.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "triax/device.hpp"

namespace triax::executor {

/// Buffers of the device for each direction of copies of activations to and from the host: one is copied while passes
/// use the other.
inline constexpr std::size_t kHostCopyBuffers = 2;

/// A block that several sets of tensors use one after another. Its size is that of the largest set.
class ReusedBlock {
 public:
  ReusedBlock() = default;
  explicit ReusedBlock(std::byte* base) : base_(base) {}
  /// Starts the next set: the tensors assigned before are no longer needed.
  void restart() { used_ = 0; }
  /// Bytes of the set up to now; restart_after() starts a set behind them.
  std::size_t used() const { return used_; }
  void restart_after(std::size_t bytes) { used_ = bytes; }
  TensorView tensor(DType dtype, const Shape& shape);
  std::size_t peak() const { return peak_; }

 private:
  std::byte* base_ = nullptr; // null: counts only
  std::size_t used_ = 0, peak_ = 0;
};

/// Part of a rank's activations: each of `layers` layers keeps `bytes` for each of `microbatches` microbatches.
struct ActivationPart {
  std::string what; // kind of layer ("block"), "transfers", or "workspace", which all layers share
  int layers = 1, microbatches = 1;
  std::size_t bytes = 0;
  std::size_t total() const {
    return bytes * static_cast<std::size_t>(layers) * static_cast<std::size_t>(microbatches);
  }
};

/// Bytes for temporary values: of the kernel set's operations, and of the optimizer. `hosted`: where the host updates,
/// of the operations that it computes, and the optimizer's are in the memory of the host too.
struct ScratchBytes {
  std::size_t operations = 0, optimizer = 0, hosted = 0;
  bool host_updates = false;
  std::size_t on_device() const { return host_updates ? operations : Arena::aligned(operations) + optimizer; }
  std::size_t on_host() const { return host_updates ? Arena::aligned(hosted) + optimizer : 0; }
};

class RankMemory {
 public:
  /// Counts only.
  RankMemory();
  /// Allocates blocks of the counted sizes, zeroed, and scratch. Throws Error with the purpose
  /// and the size if the device lacks memory.
  static RankMemory allocated(Device& device, const RankMemory& counted, const ScratchBytes& scratch, Stream& stream);

  Arena weights{"weights"}, working{"working weights"}, gradients{"gradients"}, optimizer{"optimizer state"},
      hosted_state{"optimizer state on the host"}, offload{"offload staging"},
      hosted_staging{"offload staging on the host"}, activations{"activations"},
      hosted_inputs{"activations on the host"}, cache{"cache of the sequences"}, batches{"batches"},
      values{"step values"}, staging{"staging"};
  /// `transient`: within one call of a layer; `between`: between neighbouring layers, by parity of the boundary;
  /// `leaving` and `arriving`: buffers of InputOffload, of one recomputation group at a time.
  ReusedBlock transient;
  std::array<ReusedBlock, 2> between;
  std::array<ReusedBlock, kHostCopyBuffers> leaving, arriving;
  /// If the host updates, the optimizer's are in its memory, with those of the operations that it computes there.
  std::span<std::byte> scratch, optimizer_scratch, host_scratch;
  bool offloads = false;     // `offload` is used
  bool hosts_state = false;  // `hosted_state` and `hosted_staging` are used
  bool hosts_inputs = false; // stages of the run may use `hosted_inputs`; the same on all ranks

  struct Row {
    const char* what;
    std::size_t bytes;
    MemoryKind kind = MemoryKind::device; // or pinned
  };
  /// The used bytes of each purpose, for reports; `scratch` is used while nothing is allocated. The cache, buffers for
  /// offloaded state and activations on the host are listed only if the run has them. A purpose with pinned memory has
  /// a second row for it.
  std::vector<Row> rows(const ScratchBytes& scratch) const;
  std::size_t workspace() const;
  /// All blocks of the device, with their full size.
  std::vector<std::span<std::byte>> blocks() const;

 private:
  std::unique_ptr<Memory> workspace_, scratch_, host_scratch_;
};

} // namespace triax::executor
