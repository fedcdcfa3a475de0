// SPDX-License-Identifier: Apache-2.0
// Computes the bounds between clocks from dependencies, and tightens them over all clocks.
#include "schedule/clock_alignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

/// by(a, b): lower bound of the shift of clock a, minus the shift of clock b.
class Bounds {
 public:
  explicit Bounds(int clocks)
      : clocks_(static_cast<std::size_t>(clocks)), least_(clocks_ * clocks_, -std::numeric_limits<double>::infinity()) {
    for (int clock = 0; clock < clocks; ++clock) by(clock, clock) = 0;
  }
  double& by(int of, int beyond) {
    return least_[static_cast<std::size_t>(of) * clocks_ + static_cast<std::size_t>(beyond)];
  }
  int clocks() const { return static_cast<int>(clocks_); }

  /// Tightens bounds through third clocks (Floyd-Warshall). Leaves by(a, a) at 0: if bounds contradict each other, such
  /// a cycle would make them worse each time.
  void tighten() {
    for (int over = 0; over < clocks(); ++over)
      for (int of = 0; of < clocks(); ++of)
        for (int beyond = 0; beyond < clocks(); ++beyond)
          if (of != beyond) by(of, beyond) = std::max(by(of, beyond), by(of, over) + by(over, beyond));
  }

 private:
  std::size_t clocks_;
  std::vector<double> least_;
};

template <class Visit>
void each(const Timeline& timeline, Visit visit) {
  for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank)
    for (const Span& span : timeline.rows[rank]) visit(rank, span);
}

Bounds bounds_of(const Timeline& timeline, const std::vector<int>& clock_of) {
  Bounds out(1 + *std::ranges::max_element(clock_of));
  std::map<std::tuple<Kind, int, int>, std::pair<int, double>> made; // clock and end; B counts as I
  each(timeline, [&](std::size_t rank, const Span& span) {
    const Kind kind = span.kind == Kind::backward ? Kind::backward_input : span.kind;
    made[{kind, span.stage, span.microbatch}] = {clock_of[rank], span.end};
  });
  each(timeline, [&](std::size_t rank, const Span& span) {
    for (const Need& need : rule(span.kind).needs) {
      if (!runs_layers(span.kind) || !need.condition.holds(timeline.stage_map.facts(span.stage))) continue;
      const Computing needed = computing_of(need, span.stage);
      const auto found = made.find({needed.kind, needed.stage, span.microbatch});
      if (found == made.end() || found->second.first == clock_of[rank]) continue;
      double& least = out.by(clock_of[rank], found->second.first);
      least = std::max(least, found->second.second - span.start);
    }
  });
  out.tighten();
  return out;
}

} // namespace

Alignment align(const Timeline& timeline, const std::vector<int>& clock_of) {
  TRIAX_REQUIRE(!clock_of.empty() && clock_of.size() == timeline.rows.size(),
                "clocks of {} ranks, but there are {} ranks", clock_of.size(), timeline.rows.size());
  Bounds bounds = bounds_of(timeline, clock_of);
  Alignment out;
  for (const int clock : clock_of) {
    const double least = bounds.by(clock, 0), most = -bounds.by(0, clock);
    TRIAX_REQUIRE(std::isfinite(least) && std::isfinite(most), "no transfer relates clock {} to the first clock",
                  clock);
    out.shift.push_back((least + most) / 2);
    out.within = std::max(out.within, std::abs(most - least) / 2);
  }
  return out;
}

} // namespace triax::schedule
