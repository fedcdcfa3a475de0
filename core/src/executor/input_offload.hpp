// SPDX-License-Identifier: Apache-2.0
// Copies the inputs that recomputation groups keep (memory.offload_activations) to the host and back.
//
// Threads: the rank's main thread. Ownership: owns the copy stream; borrows device and compute stream, and views of the
// rank's memory. Blocking: never: the streams wait for each other. Errors: Error if passes run in another order than
// the program's.
//
// A forward copies the inputs of a group into a buffer of the device, and the copy stream writes it to a slot on the
// host while later layers run. Before a group is recomputed, the copy stream has read its slot into another buffer. The
// order of the groups is that of the program, so copies to the device are enqueued ahead of their use: when a buffer
// becomes free, for the next group whose forward has run. All copies of a step go through one stream in order, so a
// slot is not read before it is written, and not written before it is read.
//
// When a program ends, the compute stream has waited for all copies: each group of a forward is recomputed once. So the
// next program, or a captured one, needs no event of this one.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "executor/memory.hpp"
#include "schedule/program.hpp"
#include "triax/device.hpp"

namespace triax::executor {

/// An input on the host.
struct HostedInput {
  std::vector<TensorView> slots; // of Pool::stash_i, in pinned memory
  std::array<TensorView, kHostCopyBuffers> leaving, arriving;
};
/// The inputs of a recomputation group that are on the host.
using HostedGroup = std::vector<HostedInput>;

/// All recomputation groups of a stage, in the order of its forward.
struct HostedStage {
  int stage = 0;
  std::vector<HostedGroup> groups;
};

class InputOffload {
 public:
  /// `training`: the program whose forwards keep inputs.
  InputOffload(Device& device, Stream& compute, std::vector<HostedStage> stages, const schedule::Program& training);
  InputOffload(const InputOffload&) = delete;
  InputOffload& operator=(const InputOffload&) = delete;

  /// Before the first action of a program.
  void begin(const schedule::Program& program);
  /// False for a program without backwards: its forwards keep nothing.
  bool keeps_inputs() const { return is_active_; }

  /// In a forward: the buffer `leaving` into which to copy the inputs of a group, then that this work is enqueued.
  /// @{
  std::size_t next_leaving();
  void keep(int stage, std::size_t group, int slot);
  /// @}
  /// Before a group is recomputed: the buffer `arriving` that has its inputs, then that the work that reads it is
  /// enqueued.
  /// @{
  std::size_t next_arriving(int stage, std::size_t group, int slot);
  void release();
  /// @}

 private:
  /// One recomputation of a group.
  struct Use {
    int stage = 0;
    std::size_t group = 0;
    int slot = 0;
    std::size_t kept = 0; // number of the keep() that gives its inputs
  };

  const HostedStage* find(int stage) const;
  void list_uses(const schedule::Program& training);
  const HostedGroup& group_of(int stage, std::size_t group) const;
  /// Enqueues copies to the device, as far as there are buffers and kept inputs.
  void fetch_ahead();

  Device& device_;
  Stream& compute_;
  const std::unique_ptr<Stream> copies_;
  const std::vector<HostedStage> stages_;
  const schedule::Program& training_;
  std::vector<Use> uses_;                             // of a training step, in order
  std::size_t kept_ = 0, fetched_ = 0, released_ = 0; // calls of keep(), copies to the device, calls of release()
  bool is_active_ = false;
  /// Complete when a buffer has left, has arrived, and has been read.
  std::array<Event, kHostCopyBuffers> left_{}, arrived_{}, read_{};
};

} // namespace triax::executor
