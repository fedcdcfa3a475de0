// Memory of the fake CUDA device, and the list of all of it in the process.
//
// Threads: any. Ownership: a Block owns its pages; what is freed goes to the Freeing, which keeps it as long as items
// that were put before may use it. Blocking: never. Errors: Error when there is none left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "triax/device.hpp"

namespace triax::test::fake_cuda {

/// Where an address lies.
enum class Place { device, pinned, plain };
Place place_of(const void* inside);

/// The view of the same elements that items use.
TensorView alias_of(const TensorView& view);

/// Pages of one kind of memory.
class Block {
 public:
  Block(std::size_t bytes, MemoryKind kind);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
  void* data() const noexcept { return data_; }
  /// Nobody finds it any more.
  void unlist() noexcept;

 private:
  std::byte* pages_ = nullptr; // [alias][data][a page that nobody may touch], or [data]
  std::size_t mapped_ = 0;
  void* data_ = nullptr;
};

/// Blocks that were freed while items may still use them.
class Freeing {
 public:
  /// Whether everything is done that was put on the streams before the call.
  using Done = std::function<bool()>;
  void take(std::unique_ptr<Block> block, Done done);
  /// Frees those that nothing uses any more.
  void sweep();

 private:
  struct Entry {
    std::unique_ptr<Block> block;
    Done done;
  };
  std::vector<Entry> entries_;
};

} // namespace triax::test::fake_cuda
