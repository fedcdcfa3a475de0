// SPDX-License-Identifier: Apache-2.0
// Memory of the fake CUDA device, and the process-wide list of it.
//
// Threads: any. Ownership: a Block owns its pages. Freed blocks go to Freeing, which keeps them while earlier items may
// use them. Errors: Error if there is no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "triax/device.hpp"

namespace triax::test::fake_cuda {

/// Kind of memory at an address.
enum class Place { device, pinned, plain };
Place place_of(const void* inside);

/// The view of the same elements at the address that items use.
TensorView alias_of(const TensorView& view);

/// Pages of one kind of memory.
class Block {
 public:
  Block(std::size_t bytes, MemoryKind kind);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
  void* data() const noexcept { return data_; }
  /// Removes the block from the list.
  void unlist() noexcept;

 private:
  std::byte* pages_ = nullptr; // [alias][data][guard page], or [data]
  std::size_t mapped_ = 0;
  void* data_ = nullptr;
};

/// Blocks that were freed while items may still use them.
class Freeing {
 public:
  /// True if all work enqueued before the call is complete.
  using Done = std::function<bool()>;
  void take(std::unique_ptr<Block> block, Done done);
  /// Frees the blocks that no item uses any more.
  void sweep();

 private:
  struct Entry {
    std::unique_ptr<Block> block;
    Done done;
  };
  std::vector<Entry> entries_;
};

} // namespace triax::test::fake_cuda
