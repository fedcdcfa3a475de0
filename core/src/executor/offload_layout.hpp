// SPDX-License-Identifier: Apache-2.0
// Where the offloaded state of a rank lies in its storage: blocks, which are read, updated and written one after
// another, of pieces of parameters.
//
// Threads: one. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace triax::executor {

/// A range of the rank's shard of one parameter, with all of its offloaded tensors.
struct OffloadedPiece {
  std::size_t parameter = 0;         // index in Parameters::all()
  std::int64_t first = 0, count = 0; // elements of what the rank updates
  std::size_t offset = 0;            // where the first tensor begins in the block
  std::size_t stride = 0;            // bytes from tensor to tensor
};

/// A unit that is read, updated and written together: the pieces [first, end).
struct OffloadBlock {
  int stage = 0;
  std::uint64_t offset = 0; // in the storage
  std::size_t bytes = 0;
  std::size_t first = 0, end = 0;
};

struct OffloadSettings {
  std::size_t tensors = 0; // of each parameter: master weights, if they are separate, and the optimizer's state
  std::size_t element_bytes = 4;
  std::size_t buffer_bytes = 0; // largest block, if parameters may be divided
  /// Whether the optimizer updates each element alone. Else a block is one parameter: all of it that the rank updates.
  bool divides = true;
};

class OffloadLayout {
 public:
  struct Updated {
    std::size_t parameter = 0;
    std::int64_t count = 0; // elements that the rank updates
  };

  explicit OffloadLayout(const OffloadSettings& settings) : settings_(settings) {}
  /// In the order in which a step updates stages and parameters.
  void add_stage(int stage, std::span<const Updated> parameters);

  const std::vector<OffloadedPiece>& pieces() const { return pieces_; }
  const std::vector<OffloadBlock>& blocks() const { return blocks_; }
  /// The size of the storage.
  std::uint64_t bytes() const;

 private:
  void begin_block(int stage);
  void add_piece(std::size_t parameter, std::int64_t first, std::int64_t count);
  std::int64_t elements_that_fit() const;

  OffloadSettings settings_;
  std::vector<OffloadedPiece> pieces_;
  std::vector<OffloadBlock> blocks_;
};

} // namespace triax::executor
