// SPDX-License-Identifier: Apache-2.0
// The calls that a rank posts on its communicators, in one order over all of them, and their comparison with those of a
// dry run. A step that posts something else ends with an error before a rank waits for it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::conformance {

/// A call on a communicator.
struct Posted {
  std::string group; // Group::axis
  std::string call;  // "all_gather of 4 f64"
  bool operator==(const Posted&) const = default;
};
/// "all_gather of 4 f64 over data, all_reduce of 8 f32 (sum) over tensor", or "nothing".
std::string to_text(const std::vector<Posted>& posts);
/// "all_gather of 4 f64 over data", or "nothing" if there are fewer.
std::string call_text(const std::vector<Posted>& posts, std::size_t at);
/// All posts, but of other groups only that they are there: what the ranks of one group must have in common.
std::vector<Posted> seen_by_group(const std::vector<Posted>& posts, std::string_view group);

class CollectiveLog {
 public:
  /// Any calls, as in a dry run.
  CollectiveLog() = default;
  /// Those of a dry run of a step, in each step.
  explicit CollectiveLog(std::vector<Posted> of_dry_run) : posts_(std::move(of_dry_run)), is_fixed_(true) {}

  const std::vector<Posted>& posts() const { return posts_; }
  /// Throws Error if the dry run does not post this next.
  void add(Posted post);
  /// Throws Error if the step posted less than its dry run.
  void end_step();

 private:
  std::vector<Posted> posts_;
  const bool is_fixed_ = false;
  std::size_t count_ = 0; // in this step
};

/// Logs each call, then posts it on a real communicator.
class LoggedCommunicator final : public Communicator {
 public:
  /// Both must outlive it. `real` is null in a dry run: calls complete at once, and nothing is transferred.
  LoggedCommunicator(const Group& group, CollectiveLog& log, Communicator* real)
      : Communicator(group), log_(log), real_(real) {}

  void progress() noexcept override {} // the device of the rank runs that of the real one
  void barrier(Deadline deadline) override;
  void abort(std::string_view why) noexcept override;

 protected:
  Work do_collective(const Collective& collective, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override;
  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override;

 private:
  CollectiveLog& log_;
  Communicator* const real_;
};

} // namespace triax::conformance
