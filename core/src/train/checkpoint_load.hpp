// SPDX-License-Identifier: Apache-2.0
// Reads the state of a rank from a checkpoint. All ranks do it at the same time; each verifies the checksums of a part
// of the files.
//
// Threads: the rank's main thread; during load(), one more verifies, so that the disk does not wait for checksums.
// Ownership: owns a buffer; run, layout, rank and the kept tensors must outlive it. Blocking: reads. Errors: Error with
// the file and the tensor.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/tensor_reader.hpp"
#include "config/run_config.hpp"
#include "executor/kept_state.hpp"
#include "train/training_rank.hpp"

namespace triax::train {

class CheckpointLoad {
 public:
  CheckpointLoad(const config::RunConfig& run, const Layout& layout, int number, Rank& rank,
                 std::span<const executor::KeptTensor> kept);

  /// Fills the rank's tensors; with `weights_only`, its weights, and other files are not read. The state in the result
  /// continues in this run: a loss scale that was saved in another precision is replaced by a new one. Throws Error if
  /// the rank is aborted.
  checkpoint::Manifest load(const std::filesystem::path& folder, bool weights_only);

 private:
  void load(checkpoint::TensorReader& reader, const executor::KeptTensor& tensor);
  void load_offloaded(checkpoint::TensorReader& reader, const checkpoint::SavedTensor& saved,
                      const executor::KeptTensor& tensor);
  void set_loss_scale(checkpoint::Manifest& manifest) const;

  const config::RunConfig& run_;
  const Layout& layout_;
  const int number_;
  Rank& rank_;
  const std::span<const executor::KeptTensor> kept_;
  std::vector<std::byte> host_; // for uploads
};

} // namespace triax::train
