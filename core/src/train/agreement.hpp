// SPDX-License-Identifier: Apache-2.0
// A number that all ranks agree on: the largest that one of them gave.
//
// Threads: the rank's main thread. Ownership: owns eight bytes of memory; device, stream and communicators must outlive
// it. Blocking: largest() waits until all ranks have come, or the deadline. Errors: Error of the wait.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::train {

class Agreement {
 public:
  /// `groups`: of this rank, one per axis; their order must be the same on all ranks.
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
