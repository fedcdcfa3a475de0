// SPDX-License-Identifier: Apache-2.0
// Moves blocks between a storage and a few buffers, on a thread: the next blocks are read and the last ones written
// while one is updated.
//
// Threads: the rank's main thread; one other reads and writes. Ownership: owns the thread; storage, blocks and buffers
// must outlive it. Blocking: acquire() and finish() run the progress loop. Errors: those of the storage, thrown by the
// next acquire() or finish().
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "executor/offload_layout.hpp"
#include "executor/state_storage.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax::executor {

class OffloadStream {
 public:
  static constexpr std::size_t kMaxBuffers = 3; // one is read, one updated, one written

  /// Block b uses buffer b modulo their number, which must be at most kMaxBuffers.
  OffloadStream(StateStorage& storage, std::span<const OffloadBlock> blocks,
                std::span<const std::span<std::byte>> buffers);
  ~OffloadStream();
  OffloadStream(const OffloadStream&) = delete;
  OffloadStream& operator=(const OffloadStream&) = delete;

  /// Waits until its buffer has the block. Blocks are acquired in order, from the first to the last, and released
  /// before the next is acquired.
  void acquire(std::size_t block, Device& device, Deadline deadline);
  /// Writes the block back, if it was changed, and reads the block that uses its buffer next: after the last, those of
  /// the next step.
  void release(std::size_t block, bool changed);
  /// Waits until all is written and read.
  void finish(Device& device, Deadline deadline);
  /// The storage is about to change: blocks that were read ahead are read again. Call it after finish().
  void discard();

 private:
  enum class Direction : std::uint8_t { read, write };
  struct Job {
    std::size_t block = 0;
    Direction direction = Direction::read;
  };
  /// Jobs that are done, in the order of their posts, until one has failed.
  struct Done {
    bool fired(std::uint64_t job) const noexcept {
      return count.load(std::memory_order_acquire) >= job || failed.load(std::memory_order_acquire);
    }
    std::atomic<std::uint64_t> count{0};
    std::atomic<bool> failed{false};
  };

  void post(std::size_t block, Direction direction);
  void read_ahead(std::size_t block);
  void wait_for(std::uint64_t job, Device& device, Deadline deadline);
  void run_jobs();
  void run(const Job& job);
  std::size_t buffer_of(std::size_t block) const { return block % buffers_.size(); }

  static constexpr std::size_t kMaxJobs = 2 * kMaxBuffers; // a write and a read for each buffer
  StateStorage& storage_;
  const std::span<const OffloadBlock> blocks_;
  const std::vector<std::span<std::byte>> buffers_;
  struct Slot {
    std::optional<std::size_t> block; // that is in the buffer, or will be after `job`
    std::uint64_t job = 0;
  };
  std::array<Slot, kMaxBuffers> slots_{};
  std::uint64_t posted_ = 0;
  Done done_;
  std::mutex mutex_; // protects the members below
  std::condition_variable changed_;
  std::array<Job, kMaxJobs> jobs_{}; // a ring
  std::size_t first_ = 0, waiting_ = 0;
  bool ends_ = false;
  std::optional<Error> error_;
  std::thread thread_; // last: uses all others
};

} // namespace triax::executor
