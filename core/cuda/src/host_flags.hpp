// SPDX-License-Identifier: Apache-2.0
// HostFlags: numbers in pinned memory that streams wait for (cuStreamWaitValue32) and the host writes.
//
// Two things would make such a wait wrong. Work behind it may read what a network card wrote into the GPU's memory
// (GPUDirect RDMA) before the host set the flag: where the GPU does not order these writes, the wait flushes them, or
// there are no flags. And streams that share a hardware queue of the GPU wait for each other's flags, so ranks could
// wait for each other in a cycle: no stream waits for a flag while there are more streams than queues.
//
// Ownership: HostFlags owns the memory of all flags as long as the device lives, even if their streams are destroyed,
// because work on the GPU may still read it. Blocking: finish_waits() runs the progress loop. Errors: allocate() and
// add_wait() throw Error.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "triax/device.hpp"

namespace triax::cuda {

/// The flag of one stream. The stream waits for increasing numbers, from 1 on. A flag never decreases: a stream that
/// gets the flag of a destroyed one counts from its value, so that waits of the destroyed one still end.
class HostFlag {
 public:
  HostFlag() = default;
  explicit operator bool() const noexcept { return slot_ != nullptr; }
  /// Ends the waits for `number` and for smaller numbers.
  void set(std::uint32_t number) noexcept { slot_->raise(first_ + number); }

 private:
  friend class HostFlags;
  struct Slot {
    std::uint32_t* host = nullptr;
    CUdeviceptr device = 0;
    std::uint32_t waited = 0; // the last value that a stream waits for
    void raise(std::uint32_t value) noexcept;
    bool is_waited_for() const noexcept;
  };
  explicit HostFlag(Slot& slot) : slot_(&slot), first_(*slot.host) {}

  Slot* slot_ = nullptr;
  std::uint32_t first_ = 0; // value of number 0
};

class HostFlags {
 public:
  /// Checks whether streams can wait in this way. With `wanted` false, they are treated as if they could not.
  HostFlags(bool wanted, Device& device);
  bool usable() const noexcept { return wait_ != nullptr; }
  /// While `paused` is true, no stream may wait for the host (triax/lazy_load_guard.hpp).
  void set_paused(bool paused) noexcept { paused_ = paused; }
  /// The number of streams up to which they have a hardware queue each.
  int max_streams() const noexcept { return max_streams_; }
  void add_stream() noexcept { ++streams_; }
  void remove_stream() noexcept { --streams_; }
  /// Whether a stream may wait for its flag now.
  bool may_wait() const noexcept { return !paused_ && streams_ <= max_streams_; }
  HostFlag allocate();
  /// The flag's stream is destroyed, and all its waits have been ended: another stream may get the flag.
  void free(const HostFlag& flag) noexcept { free_.push_back(flag.slot_); }
  /// Work that is enqueued later runs after the flag was set to `number` or a later number.
  void add_wait(const HostFlag& flag, std::uint32_t number, cudaStream_t stream);
  /// Before a call that waits for the GPU: returns when no stream waits for a flag. After an abort of the rank, and at
  /// the device's default timeout, which aborts it, ends the waits: work behind them runs on data that did not arrive.
  void finish_waits() noexcept;

 private:
  using WaitValue = CUresult(CUDAAPI*)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
  bool works(WaitValue wait);
  HostFlag::Slot& new_slot();

  Device& device_;
  WaitValue wait_ = nullptr;
  unsigned flags_of_wait_ = CU_STREAM_WAIT_VALUE_GEQ;
  std::vector<std::unique_ptr<Memory>> pages_;
  std::size_t used_ = 0;              // bytes used of the last page
  std::deque<HostFlag::Slot> slots_;  // fixed addresses: flags refer to them
  std::vector<HostFlag::Slot*> free_; // with capacity for all slots
  int max_streams_ = 0, streams_ = 0;
  bool paused_ = false;
};

} // namespace triax::cuda
