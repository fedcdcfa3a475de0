// From when to when ranks are there and how much of that they compute, and what it comes to: cost, work and bubble of a
// step, planned or measured.
//
// Threads: values. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <algorithm>
#include <limits>

namespace triax::schedule {

/// The passes of one rank.
struct RankExtent {
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

/// All ranks.
struct Extent {
  double first = 0, last = 0; // the first start and the last end
  double cost = 0;            // the longest that a rank is there, from the first start of its passes to their last end
  double work = 0;            // the most that a rank computes in its passes

  void covers(double start, double end) {
    first = empty_ ? start : std::min(first, start);
    last = empty_ ? end : std::max(last, end);
    empty_ = false;
  }
  void add(const RankExtent& rank) {
    if (rank.empty()) return;
    covers(rank.first, rank.last);
    cost = std::max({cost, rank.length(), rank.work}); // no rank is there for less than its work; sums round
    work = std::max(work, rank.work);
  }
  double length() const { return last - first; }
  double bubble() const { return cost - work; }
  double bubble_rate() const { return cost > 0 ? bubble() / cost : 0; }
  double bubble_over_ideal() const { return work > 0 ? bubble() / work : 0; }

 private:
  bool empty_ = true;
};

} // namespace triax::schedule
