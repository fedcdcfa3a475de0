// SPDX-License-Identifier: Apache-2.0
// Updates on the host that are one step late: while the device computes a step, a thread of the rank updates the
// weights with the gradients of the step before (memory.offload_delayed_update). Source: Ren et al., "ZeRO-Offload",
// USENIX ATC'21, section 5.2.
//
// Threads: the rank's main thread; one other calls the update. Ownership: owns the thread and the copies; borrows what
// HostCopies borrows. Blocking: apply(), finish(), refresh() and restore() run the progress loop. Errors: those of the
// device and of the update, thrown by the next wait.
//
// All blocks have separate memory on the host: gradients stay there until they are used, and updated weights until the
// passes that read the old ones have run. The main thread publishes which gradients have arrived, in its progress loop,
// because it alone may ask the device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "executor/host_copies.hpp"
#include "executor/memory.hpp"
#include "triax/error.hpp"

namespace triax::executor {

class DelayedUpdate final : public ProgressSource {
 public:
  /// The update of a block. `scalars`: of the step that computed its gradients.
  using Update = std::function<void(std::size_t block, const StepScalars& scalars)>;

  /// As HostCopies. `pieces`: those of stage_all_pieces().
  DelayedUpdate(Device& device, Stream& compute, const HostKernels& host, std::span<const OffloadBlock> blocks,
                std::vector<StagedPiece> pieces);
  /// The block that is being updated is completed, the others are not.
  ~DelayedUpdate() override;
  DelayedUpdate(const DelayedUpdate&) = delete;
  DelayedUpdate& operator=(const DelayedUpdate&) = delete;

  /// Before the first step. `timeout_s`: of the wait for one block.
  void set_update(Update update, double timeout_s);
  /// Requests the gradients of a step; the other thread updates each block when its gradients are on the host. The
  /// update before must have been applied.
  void begin(const StepScalars& scalars);
  /// Later work of the compute stream may change the gradients of begin().
  void keep_gradients();
  /// Whether updated weights have not been sent to the device.
  bool is_pending() const { return pending_; }
  /// Sends the weights of a pending update, each block when it is updated. Later work of the compute stream reads them.
  void apply();
  /// Waits until the memory of the host has a pending update, which stays pending, and a copy of the weights that
  /// layers read.
  void finish();
  /// As HostCopies. No update is pending then.
  void refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline);

  /// The weights that layers read, of a piece: the copy of finish(). It is in the memory of the gradients, which have
  /// been used.
  TensorView read_weights(std::size_t piece) const;
  /// After refresh(): layers read read_weights() again, and those of refresh() are pending.
  void restore(Deadline deadline);

  const HostTraffic& traffic() const { return copies_.traffic(); }
  void progress() noexcept override;

 private:
  bool is_updated(std::size_t blocks) const noexcept {
    return updated_.load(std::memory_order_acquire) >= blocks || failed_.load(std::memory_order_acquire);
  }
  void wait_for(std::size_t blocks);
  void run();

  Device& device_;
  Stream& compute_;
  HostCopies copies_;
  Update update_;
  double timeout_s_ = 1e9;      // none, see deadline_in()
  std::vector<Event> arrivals_; // by block: its gradients are on the host
  std::size_t requested_ = 0;   // blocks of the last begin()
  std::size_t published_ = 0;   // of these, blocks that the other thread knows to have arrived
  bool pending_ = false;
  StepScalars scalars_;                 // of begin(): constant while blocks wait
  std::atomic<std::size_t> updated_{0}; // blocks, in order
  std::atomic<bool> failed_{false};
  std::mutex mutex_; // protects the members below
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  bool ends_ = false;
  std::optional<Error> error_;
  std::thread thread_; // last: uses all others
};

/// As stage_pieces(), with memory on the host for the gradients and weights of all blocks at once.
std::vector<StagedPiece> stage_all_pieces(const OffloadLayout& layout, const StagedTypes& types,
                                          std::span<const ParameterShard> shards, RankMemory& memory);

} // namespace triax::executor
