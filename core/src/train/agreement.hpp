// SPDX-License-Identifier: Apache-2.0
// All ranks agree on a number: the largest that any rank passes.
//
// Threads: the rank's main thread. Ownership: owns eight bytes of memory; device, stream and communicators must outlive
// it. Blocking: largest() waits until all ranks call it, or for the deadline. Errors: Error of the wait.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::train {

class Agreement {
 public:
  /// `groups`: one group of this rank per axis, in the same order on all ranks.
  Agreement(Device& device, Stream& stream, std::vector<Communicator*> groups);
  std::int32_t largest(std::int32_t value, Deadline deadline);

 private:
  Device& device_;
  Stream& stream_;
  const std::vector<Communicator*> groups_;
  const std::unique_ptr<Memory> on_device_, on_host_;
  const TensorView value_, host_value_; // i32 [1]
};

} // namespace triax::train
