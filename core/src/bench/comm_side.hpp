// SPDX-License-Identifier: Apache-2.0
// One side of a measurement on one rank: a separate device, the communicator and the buffers. The progress loop of a
// side does not poll the other side.
//
// Threads: the rank's thread; abort(): any. Ownership: owns all; the plan and the store must outlive it. Blocking:
// join(), barrier(), finish() and check(). Errors: Error with the plugin.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/comm_plan.hpp"
#include "bench/exact_values.hpp"
#include "plugin/loader.hpp"
#include "triax/communicator.hpp"
#include "triax/device.hpp"
#include "triax/kernels.hpp"
#include "triax/log.hpp"

namespace triax::bench {

/// Which rank of a plan this is, and where its device comes from.
struct RankSeat {
  int rank = 0, local_rank = 0, local_ranks = 1;
  const config::PluginChoice* kernels = nullptr; // whose device is used; null: the host device
  Log* log = &null_log();                        // of the plugins
};

class CommSide {
 public:
  CommSide(const CommPlan& plan, const Side& side, const RankSeat& seat);
  CommSide(const CommSide&) = delete;
  CommSide& operator=(const CommSide&) = delete;

  /// Joins the group of all ranks. `name`: of this side.
  void join(const std::string& name, Store& store, Deadline deadline);
  /// Selects a size, and writes the inputs.
  void set_size(std::int64_t bytes);

  /// Posts the operation.
  Work post();
  void wait(const Work& work, Deadline deadline) { device_->wait(work, deadline); }
  /// Waits for everything that was posted.
  void finish(Deadline deadline);
  void barrier(Deadline deadline) { communicator_->barrier(deadline); }
  /// Messages of a call: of a send, half of the window.
  std::int64_t messages() const { return messages_; }
  /// Calls that are in flight at the same time.
  std::size_t calls_in_flight() const { return streams_.size(); }
  bool is_on_host() const { return device_->kind() == DeviceKind::host; }
  /// One round of the progress loop, for waits that do not use the communicator.
  bool progress() { return device_->progress(); }

  /// Fills the output with values that no result has. For a broadcast, writes the root's data again.
  void clear_output();
  /// Throws Error with the first wrong element of the output.
  void check_output();

  void abort(std::string_view why) noexcept;

 private:
  std::unique_ptr<Device> make_device(const RankSeat& seat);
  void set_transfers();
  void write(const TensorView& to, const std::function<void(const TensorView&)>& fill);
  std::string where() const;

  const CommPlan& plan_;
  const Side& side_;
  const int rank_;
  const Layout layout_;
  const ExactValues values_;
  const std::int64_t messages_;
  std::int64_t bytes_ = 0;
  std::size_t posts_ = 0;
  // Destroyed in reverse order.
  std::optional<plugin::Instance<KernelSet>> kernels_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> memory_, staging_;     // staging_: host memory, if the device is not the host
  std::vector<std::unique_ptr<Stream>> streams_; // a send has two: one half of the window waits while the other moves
  plugin::Instance<CommBackend> backend_;
  std::mutex mutex_; // guards communicator_, which abort() reads
  std::unique_ptr<Communicator> communicator_;
  TensorView in_, out_;
  Collective collective_;
  std::vector<Transfer> transfers_; // for a point-to-point operation
};

} // namespace triax::bench
