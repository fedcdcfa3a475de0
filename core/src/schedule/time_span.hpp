// SPDX-License-Identifier: Apache-2.0
// Active interval and work of ranks, and from them active time, work and bubble of a step, simulated or measured.
#pragma once

#include <algorithm>
#include <limits>

namespace triax::schedule {

/// The span of one rank: from the start of its first pass to the end of its last.
struct RankTimeSpan {
  double first = std::numeric_limits<double>::max(), last = std::numeric_limits<double>::lowest();
  double work = 0;

  void covers(double start, double end) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
  bool empty() const { return last < first; }
  double length() const { return empty() ? 0 : last - first; }
  double idle() const { return length() - work; }
};

/// The span of all ranks.
struct TimeSpan {
  double first = 0, last = 0; // first start and last end
  double active = 0;          // longest active interval of a rank
  double work = 0;            // largest total pass time of a rank

  void covers(double start, double end) {
    first = empty_ ? start : std::min(first, start);
    last = empty_ ? end : std::max(last, end);
    empty_ = false;
  }
  void add(const RankTimeSpan& rank) {
    if (rank.empty()) return;
    covers(rank.first, rank.last);
    active = std::max({active, rank.length(), rank.work}); // an interval can be shorter than the work only by rounding
    work = std::max(work, rank.work);
  }
  double length() const { return last - first; }
  double bubble() const { return active - work; }
  double bubble_rate() const { return active > 0 ? bubble() / active : 0; }
  double bubble_over_work() const { return work > 0 ? bubble() / work : 0; }

 private:
  bool empty_ = true;
};

} // namespace triax::schedule
