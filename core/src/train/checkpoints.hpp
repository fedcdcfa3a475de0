// SPDX-License-Identifier: Apache-2.0
// Saves and restores the state of one rank. Every rank writes the parts that it owns; rank 0 completes the checkpoint
// when all ranks have written theirs.
//
// Threads: the rank's main thread; one other thread writes, so that training continues meanwhile. Ownership: owns
// the copy of the state that is written; run, rank, store and log must outlive it. Blocking: restore() reads, save()
// waits for a save that is still being written and for the copy, wait() for the disk. Errors: restore() and rewind()
// throw Error. A checkpoint that cannot be written is logged and counted, and training continues: the one before is
// kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "train/resume_point.hpp"
#include "train/training_rank.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

class Checkpoints {
 public:
  /// All ranks must construct it, with the same run. For a run that evaluates, only restore() and newest(). Calls to
  /// save() and wait() also happen on all ranks.
  Checkpoints(const config::RunConfig& run, const Layout& layout, int rank, Rank& of, Store& store, Log& log);
  /// Waits for a save that is being written, unless the rank has been aborted.
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Continues where rank 0 finds that the run ended. Returns a line that says so, on rank 0; else it is empty.
  std::string restore();
  struct Rewound {
    std::filesystem::path folder; // of the checkpoint
    std::int64_t step = 0;        // the last step that it has
    /// The samples [begin, end) are left out: those since the checkpoint.
    std::int64_t begin = 0, end = 0;
  };
  /// Goes back to the newest complete checkpoint, which may be what the rank was restored from, and continues with the
  /// samples after those of the last step. Empty if there is none.
  std::optional<Rewound> rewind();
  /// Whether restore() has found a checkpoint of this run, not of checkpoint.from.
  bool continues_run() const;
  /// Whether a checkpoint is due after this step.
  bool is_due(std::int64_t step) const;
  enum class Old : std::uint8_t { removed, kept };
  /// Saves the state after the last step. `old`: checkpoints beyond checkpoint.keep.
  void save(Old old = Old::removed);
  /// Waits until the last save has been written; on rank 0, until it is complete.
  void wait();

  /// Seconds that the last save took, with writing; 0 before.
  double last_seconds() const;
  /// Number of checkpoints that are missing, because they could not be written. Those of all ranks on rank 0.
  std::int64_t missing() const;
  /// The newest complete checkpoint, which may be what the rank was restored from; empty if there is none. On ranks
  /// other than 0: the last one that they have written their part of. Call it after wait().
  std::string newest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether checkpoints are written from a copy of the state, in the host's memory: on a device that is not the host,
/// and while training continues. Else they are written from the state itself.
bool uses_staging(const config::RunConfig& run, DeviceKind device, bool computes);
/// The size of that copy.
std::size_t staging_bytes(std::span<const executor::KeptTensor> kept);

} // namespace triax::train
