// SPDX-License-Identifier: Apache-2.0
// Reads a checkpoint while another thread verifies checksums, so that the disk does not wait for them.
//
// Threads: the rank's main thread; one more verifies. Blocking: reads. Errors: Error with the file and the tensor, or
// of the abort flag.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "checkpoint/tensor_reader.hpp"
#include "triax/device.hpp"

namespace triax::train {

/// The share of one of `ranks` ranks that load the same checkpoint at the same time.
struct VerifiedShare {
  std::size_t rank = 0, ranks = 1;
  std::string state = {}; // only files with tensors of this state; empty: all
};

/// Calls `load`, which may use `reader`. Damage of the files is reported before what `load` throws: it may be the
/// reason.
void load_verified(const checkpoint::TensorReader& reader, const VerifiedShare& share, const AbortFlag& abort,
                   const std::function<void()>& load);

/// A checkpoint may take longer to read than train.stall_timeout_s: to call for each tensor.
void note_load_progress();

} // namespace triax::train
