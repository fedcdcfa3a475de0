// SPDX-License-Identifier: Apache-2.0
// Writes the weights of a checkpoint as one safetensors file, with whole tensors.
//
// Threads: one at a time per file. Blocking: reads the checkpoint twice (checksums, then values), writes, and waits for
// the disk. Memory: a few blocks of values, whatever the size of the tensors. Errors: Error with the file; then there
// is no file of that name, or the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "checkpoint/tensor_reader.hpp"

namespace triax::checkpoint {

struct ExportChoice {
  std::optional<DType> dtype; // a floating type; empty: that of the master weights
  bool replace = false;       // a file of that name
};

struct ExportedWeights {
  std::size_t tensors = 0;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0; // of the file
};

/// Names and order of the tensors do not depend on the ranks that wrote the checkpoint: equal weights give equal files,
/// but for the header's metadata (step, tokens, version).
class WeightsExport {
 public:
  /// Refuses a file that exists, unless it is to be replaced. `from` must outlive the object.
  WeightsExport(TensorReader& from, std::filesystem::path file, const ExportChoice& choice);
  /// Throws Error for a weight that the type cannot hold.
  ExportedWeights write(const StopRequest& stop = {});

 private:
  TensorReader& from_;
  const std::filesystem::path file_;
  const ExportChoice choice_;
};

} // namespace triax::checkpoint
