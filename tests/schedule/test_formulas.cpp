// The published bubbles and activation counts, over every shape up to p = 16, m = 64, v = 4, against a clock of this
// file's own: in integers, and with its own idea of what an action waits for.
//
// Bubbles: GPipe (arXiv 1811.06965), 1F1B (SC'21, arXiv 2104.04473, section 2.2.1) and interleaved 1F1B (2.2.2).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "schedule/csv.hpp"
#include "schedule/lower.hpp"
#include "schedule/timing.hpp"
#include "schedule/verify.hpp"
#include "support/loaded_scheduler.hpp"

namespace {
using namespace triax;

constexpr int kMaxPipeline = 16, kMaxMicrobatches = 64, kMaxChunks = 4;
constexpr int kMaxProved = 192; // passes of a step whose programs are proved as well

/// Time of one stage's forward and backward.
struct Costs {
  int forward, backward;
};

struct Measured {
  int span = 0;               // from the first start to the last end of all ranks
  int longest_row = 0;        // from a rank's own first start to its last end, the most over ranks
  std::vector<int> work;      // by rank
  std::vector<int> in_flight; // by rank: the most forwards whose backward has not ended
};

/// Runs the rows tick by tick: a free rank starts its next action in the tick by which all it waits for has ended.
class Clock {
 public:
  Clock(const Schedule& schedule, const PipelineShape& shape, Costs costs)
      : schedule_(schedule), shape_(shape), costs_(costs), ranks_(static_cast<std::size_t>(shape.pipeline)) {
    const auto cells = static_cast<std::size_t>(shape.pipeline * shape.chunks * shape.microbatches);
    forward_end_.assign(cells, kNever);
    backward_end_.assign(cells, kNever);
  }

  Measured run() {
    std::size_t left = 0;
    for (int rank = 0; rank < schedule_.ranks(); ++rank) left += schedule_.row(rank).size();
    const int limit = static_cast<int>(left) * std::max(costs_.forward, costs_.backward);
    for (int now = 0; left > 0 && now <= limit; ++now)
      for (int rank = 0; rank < schedule_.ranks(); ++rank) left -= start_next(rank, now) ? 1 : 0;
    EXPECT_EQ(left, 0u) << "the clock stands still";
    Measured out;
    for (const Rank& rank : ranks_) {
      out.span = std::max(out.span, rank.free_at);
      out.longest_row = std::max(out.longest_row, rank.free_at - rank.first_start);
      out.work.push_back(rank.work);
      out.in_flight.push_back(rank.peak);
    }
    return out;
  }

 private:
  static constexpr int kNever = 1 << 30;
  struct Rank {
    std::size_t next = 0;
    int free_at = 0, first_start = kNever, work = 0, now = 0, peak = 0;
  };

  int& end_of(std::vector<int>& ends, int stage, int microbatch) {
    return ends[static_cast<std::size_t>(stage * shape_.microbatches + microbatch)];
  }
  int waits_until(const Action& action) {
    const int stage = action.stage, mb = action.microbatch, last = shape_.pipeline * shape_.chunks - 1;
    if (action.kind == ComputeKind::forward) return stage == 0 ? 0 : end_of(forward_end_, stage - 1, mb);
    const int own = end_of(forward_end_, stage, mb);
    return stage == last ? own : std::max(own, end_of(backward_end_, stage + 1, mb));
  }

  bool start_next(int number, int now) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    const std::vector<Action>& row = schedule_.row(number);
    if (rank.next == row.size() || rank.free_at > now) return false;
    const Action& action = row[rank.next];
    if (waits_until(action) > now) return false;
    const bool is_forward = action.kind == ComputeKind::forward;
    const int cost = is_forward ? costs_.forward : costs_.backward;
    rank.next += 1;
    rank.free_at = now + cost;
    rank.first_start = std::min(rank.first_start, now);
    rank.work += cost;
    rank.now += is_forward ? 1 : -1;
    rank.peak = std::max(rank.peak, rank.now);
    end_of(is_forward ? forward_end_ : backward_end_, action.stage, action.microbatch) = now + cost;
    return true;
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  Costs costs_;
  std::vector<Rank> ranks_;
  std::vector<int> forward_end_, backward_end_;
};

/// By the times that lowering and drawings use: F one, B two.
std::int64_t engine_span(const Schedule& schedule) {
  std::int64_t span = 0;
  for (const auto& row : schedule::end_times(schedule)) span = std::max(span, row.back());
  return span;
}

class Formulas : public ::testing::TestWithParam<int> {
 protected:
  /// Proves the schedule, and holds it to a bubble of (p-1) forwards and backwards of one chunk beside the work of m*v
  /// of them: bubble over ideal = (p-1)/(v*m) with a chunk's times a v-th of a rank's. For GPipe and 1F1B v is 1.
  void check(const Scheduler& scheduler, const PipelineShape& shape, int (*in_flight)(const PipelineShape&, int)) {
    SCOPED_TRACE(text("p = {}, v = {}, m = {}", shape.pipeline, shape.chunks, shape.microbatches));
    ASSERT_TRUE(scheduler.supports(shape)) << scheduler.supports(shape).reason();
    const Schedule schedule = scheduler.rows(shape);
    const std::vector<Support> faults = schedule::verify(schedule, shape);
    ASSERT_TRUE(faults.empty()) << faults.front().reason();
    for (const Costs costs : {Costs{1, 2}, Costs{3, 3}, Costs{3, 5}}) {
      const Measured measured = Clock(schedule, shape, costs).run();
      const int pass = costs.forward + costs.backward;
      const int ideal = shape.microbatches * shape.chunks * pass;
      EXPECT_EQ(measured.span - ideal, (shape.pipeline - 1) * pass);
      EXPECT_EQ(measured.longest_row, measured.span) << "rank 0 is there from the first forward to the last backward";
      for (int rank = 0; rank < shape.pipeline; ++rank) {
        EXPECT_EQ(measured.work[static_cast<std::size_t>(rank)], ideal);
        EXPECT_EQ(measured.in_flight[static_cast<std::size_t>(rank)], in_flight(shape, rank)) << "rank " << rank;
      }
    }
    EXPECT_EQ(engine_span(schedule), Clock(schedule, shape, {1, 2}).run().span);
    if (shape.stages() * shape.microbatches <= kMaxProved) check_programs(schedule, shape);
  }

  /// For backends that promise the least.
  void check_programs(const Schedule& schedule, const PipelineShape& shape) {
    const schedule::Assumptions least{CommTraits::Order::serial, CommTraits::Send::rendezvous,
                                      CommTraits::Post::blocking};
    for (const Support& fault : schedule::verify(schedule::lower(schedule, shape), {shape}, least))
      ADD_FAILURE() << fault.reason();
    for (const Support& fault : schedule::verify(schedule::lower_forward_only(schedule, shape), {shape, true}, least))
      ADD_FAILURE() << fault.reason();
  }
};

int gpipe_in_flight(const PipelineShape& shape, int) {
  return shape.microbatches;
}

/// min(m, p-i) on stage i: the forwards of the warm-up, p-1-i, and the one that the steady state adds.
int one_f_one_b_in_flight(const PipelineShape& shape, int rank) {
  return std::min(shape.microbatches, shape.pipeline - rank);
}

/// In chunks, as Megatron-LM counts: the warm-up's forwards, 2(p-1-i) + (v-1)p, and the one that the steady state adds;
/// with m = p a step has fewer passes than that on the first ranks, and then all of them are in flight.
int interleaved_in_flight(const PipelineShape& shape, int rank) {
  const int p = shape.pipeline, v = shape.chunks;
  return std::min(shape.microbatches * v, 2 * (p - 1 - rank) + (v - 1) * p + 1);
}

TEST_P(Formulas, GPipe) {
  const test::LoadedScheduler scheduler("sched-gpipe");
  for (int m = 1; m <= kMaxMicrobatches; ++m) check(*scheduler, {GetParam(), 1, m}, gpipe_in_flight);
}

TEST_P(Formulas, OneForwardOneBackward) {
  const test::LoadedScheduler scheduler("sched-1f1b");
  for (int m = 1; m <= kMaxMicrobatches; ++m) check(*scheduler, {GetParam(), 1, m}, one_f_one_b_in_flight);
}

TEST_P(Formulas, Interleaved) {
  const test::LoadedScheduler scheduler("sched-interleaved");
  const int p = GetParam();
  for (int v = 2; v <= kMaxChunks; ++v)
    for (int m = p; m <= kMaxMicrobatches; m += p) check(*scheduler, {p, v, m}, interleaved_in_flight);
}

/// 1 + (p-1)/(p*v) times the activations of 1F1B's first rank, p*v chunks (Korthikanti et al., arXiv 2205.05198), where
/// there are that many passes: from m = 2p on.
TEST_P(Formulas, InterleavingHoldsThePublishedShareMore) {
  const int p = GetParam();
  const test::LoadedScheduler scheduler("sched-interleaved");
  for (int v = 2; v <= kMaxChunks; ++v) {
    const PipelineShape shape{p, v, 2 * p};
    const Schedule schedule = scheduler->rows(shape);
    EXPECT_EQ(Clock(schedule, shape, {1, 2}).run().in_flight[0], p * v + p - 1);
  }
}

TEST_P(Formulas, ShapesAreAcceptedOrRefusedByTheirRules) {
  const test::LoadedScheduler gpipe("sched-gpipe"), plain("sched-1f1b"), interleaved("sched-interleaved");
  const int p = GetParam();
  for (int v = 1; v <= kMaxChunks; ++v)
    for (int m = 1; m <= kMaxMicrobatches; ++m) {
      SCOPED_TRACE(text("v = {}, m = {}", v, m));
      EXPECT_EQ(static_cast<bool>(gpipe->supports({p, v, m})), v == 1);
      EXPECT_EQ(static_cast<bool>(plain->supports({p, v, m})), v == 1);
      EXPECT_EQ(static_cast<bool>(interleaved->supports({p, v, m})), v > 1 && m % p == 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Pipelines, Formulas, ::testing::Range(1, kMaxPipeline + 1));

TEST(Schedulers, TheSameShapeGivesTheSameBytes) {
  const std::map<std::string, PipelineShape> shapes = {
      {"sched-gpipe", {4, 1, 9}}, {"sched-1f1b", {5, 1, 8}}, {"sched-interleaved", {4, 3, 12}}};
  for (const auto& [name, shape] : shapes) {
    const test::LoadedScheduler one(name), other(name);
    const Schedule first = one->rows(shape);
    one->rows({shape.pipeline, shape.chunks, 2 * shape.pipeline}); // nothing of it stays
    for (const Schedule& again : {one->rows(shape), other->rows(shape)}) {
      EXPECT_EQ(schedule::to_csv(again), schedule::to_csv(first)) << name;
      EXPECT_EQ(again.stage_rank(), first.stage_rank()) << name;
      EXPECT_EQ(again.delay, 0) << name;
    }
  }
}

} // namespace
