// SPDX-License-Identifier: Apache-2.0
// Base of the host tasks that inject faults.
//
// Ownership: the communicator's pool, which reuses a task when its stream has finished it. A communicator that is
// destroyed before its streams leaves the pool to the tasks that are queued.
#pragma once

#include <memory>
#include <triax/device.hpp>
#include <utility>

namespace triax::comm_faulty {

class PooledTask : public HostTask {
 public:
  bool is_queued() const noexcept { return is_queued_; }
  /// For a communicator that is destroyed while the task is queued.
  void keep_alive(std::shared_ptr<void> pool) noexcept { pool_ = std::move(pool); }

 protected:
  /// Call it when the task is posted to a stream.
  void set_queued() noexcept { is_queued_ = true; }
  /// Call it when the stream has finished or dropped the task. May destroy this object.
  void finish() noexcept {
    is_queued_ = false;
    const std::shared_ptr<void> last = std::move(pool_); // may be the last reference to the pool that holds this
  }

 private:
  bool is_queued_ = false;
  std::shared_ptr<void> pool_;
};

} // namespace triax::comm_faulty
