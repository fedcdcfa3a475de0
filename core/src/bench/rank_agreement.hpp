// SPDX-License-Identifier: Apache-2.0
// How ranks agree through the store, between the turns that are timed. A rank that waits runs the progress loop,
// because its communicators may have messages for ranks that have not come as far.
//
// Threads: the rank's. Ownership: borrows the store, the flag and the function. Blocking: until all ranks are there, or
// the deadline. Errors: Error with the reason of an abort, or at the deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/abort_flag.hpp"
#include "triax/communicator.hpp"

namespace triax::bench {

class RankAgreement {
 public:
  RankAgreement(Store& store, const control::JobAbort& abort, int rank, int ranks, double timeout_s,
                std::function<bool()> progress)
      : store_(store),
        abort_(abort),
        rank_(rank),
        ranks_(ranks),
        timeout_s_(timeout_s),
        progress_(std::move(progress)) {}

  /// Waits for all ranks.
  void barrier();
  /// Returns the largest of all ranks' times, on all ranks; to the nanosecond, and at least one.
  double largest(double seconds);
  /// Returns the texts of all ranks on rank 0, and nothing on others. Waits for all ranks.
  std::vector<std::string> gather(const std::string& own);

 private:
  std::string next_key();
  std::int64_t of_rank_0(std::int64_t number);
  std::int64_t wait_for(const std::string& key, std::int64_t least);

  Store& store_;
  const control::JobAbort& abort_;
  const int rank_, ranks_;
  const double timeout_s_;
  const std::function<bool()> progress_;
  int uses_ = 0;
  std::int64_t barriers_ = 0;
};

} // namespace triax::bench
