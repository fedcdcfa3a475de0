// SPDX-License-Identifier: Apache-2.0
// The memory of a rank: one arena per purpose, counted first, then allocated once, before the first step.
//
// Threads: the rank's main thread. Ownership: owns the blocks; views point into them. Blocking: allocates only in
// allocated(). Whoever places tensors does it twice in the same order: into a counting memory, whose views have no
// data, and into the one allocated from it.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "triax/device.hpp"

namespace triax::executor {

/// A block that different tensors use one after another: it is as large as the largest set of them.
class Overlay {
 public:
  Overlay() = default;
  explicit Overlay(std::byte* base) : base_(base) {}
  /// What was placed before is no longer needed when what comes now is.
  void restart() { used_ = 0; }
  TensorView tensor(DType dtype, const Shape& shape);
  std::size_t most() const { return most_; }

 private:
  std::byte* base_ = nullptr; // null: counts
  std::size_t used_ = 0, most_ = 0;
};

/// Part of a rank's activations: `layers` layers keep `bytes` each, of each of `microbatches` microbatches.
struct ActivationPart {
  std::string what; // of layers their kind: "block"; "transfers", and "workspace", which is used again by every layer
  int layers = 1, microbatches = 1;
  std::size_t bytes = 0;
  std::size_t total() const {
    return bytes * static_cast<std::size_t>(layers) * static_cast<std::size_t>(microbatches);
  }
};

class RankMemory {
 public:
  /// Counts only.
  RankMemory();
  /// Blocks of the sizes that were counted, zeroed, and `scratch` bytes for operations. Throws Error naming the purpose
  /// and the size if the device has no room.
  static RankMemory allocated(Device& device, const RankMemory& counted, std::size_t scratch, Stream& stream);

  Arena weights{"weights"}, working{"working weights"}, gradients{"gradients"}, optimizer{"optimizer state"},
      activations{"activations"}, batches{"batches"}, values{"step values"}, staging{"staging"};
  /// Within one layer's call; and between neighbouring layers, by parity of the boundary.
  Overlay transient;
  std::array<Overlay, 2> between;
  std::span<std::byte> scratch;

  struct Row {
    const char* what;
    std::size_t bytes;
  };
  /// What is used of each, for reports; `scratch_bytes` where nothing is allocated yet.
  std::vector<Row> rows(std::size_t scratch_bytes) const;
  std::size_t workspace() const;
  /// The device's blocks, whole.
  std::vector<std::span<std::byte>> blocks() const;

 private:
  std::unique_ptr<Memory> workspace_, scratch_;
};

} // namespace triax::executor
