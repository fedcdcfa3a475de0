// SPDX-License-Identifier: Apache-2.0
// All ranks agree on numbers: the largest that any rank passes.
//
// Threads: the rank's main thread. Ownership: owns a few bytes of memory; device, stream and communicators must outlive
// it. Blocking: largest() waits until all ranks call it, or for the deadline. Errors: Error of the wait.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::train {

class Agreement {
 public:
  /// `groups`: one group of this rank per axis, in the same order on all ranks. `max_values`: of one call.
  Agreement(Device& device, Stream& stream, std::vector<Communicator*> groups, std::int64_t max_values = 1);
  std::int32_t largest(std::int32_t value, Deadline deadline);
  /// The same for each of some values; their number must be that of all ranks.
  void largest(std::span<std::int32_t> values, Deadline deadline);

 private:
  Device& device_;
  Stream& stream_;
  const std::vector<Communicator*> groups_;
  const std::unique_ptr<Memory> on_device_, on_host_;
  const TensorView values_, host_values_; // i32 [max_values]
};

} // namespace triax::train
