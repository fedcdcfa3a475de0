// Walks a row once, giving each pool's lowest free slot to whoever fills it, as the rule table says.
#include "schedule/lower.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

/// The slots of one pool of one stage: who has which, and the most there were at once.
class SlotPool {
 public:
  std::int32_t take(int microbatch) {
    const auto free = std::ranges::find(holders_, -1);
    const auto slot = free - holders_.begin();
    if (free == holders_.end()) {
      holders_.push_back(microbatch);
    } else {
      *free = microbatch;
    }
    return static_cast<std::int32_t>(slot);
  }
  std::int32_t find(int microbatch) const {
    const auto found = std::ranges::find(holders_, microbatch);
    return static_cast<std::int32_t>(found == holders_.end() ? -1 : found - holders_.begin());
  }
  void release(int microbatch) { std::ranges::replace(holders_, microbatch, -1); }
  std::int32_t size() const { return static_cast<std::int32_t>(holders_.size()); }

 private:
  std::vector<int> holders_; // microbatch by slot, -1: free
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, const PipelineShape& shape, int rank, bool keeps_stash)
      : stages_total_(shape.stages()), keeps_stash_(keeps_stash) {
    const std::vector<int>& ranks = schedule.stage_rank().at(0);
    for (int stage = 0; stage < stages_total_; ++stage)
      if (ranks.at(static_cast<std::size_t>(stage)) == rank) stages_.push_back(stage);
    TRIAX_REQUIRE(static_cast<int>(stages_.size()) == stages_total_,
                  "rank {} holds {} of {} stages: without transfers a rank holds all", rank, stages_.size(),
                  stages_total_);
  }

  void add(Kind kind, int stage, int microbatch) {
    ProgramAction action{kind, stage, microbatch, kNoSlots, kNoSlots};
    for (const Use& use : rule(kind).fills) fill(action, use);
    for (const Pool pool : rule(kind).reads) slot(action.own, pool) = pool_of(stage, pool).find(microbatch);
    for (const Pool pool : rule(kind).frees) pool_of(stage, pool).release(microbatch);
    if (!keeps_stash_) release_all(stage, microbatch);
    actions_.push_back(action);
  }
  void add(Kind kind, int stage = -1) { actions_.push_back({kind, stage, -1, kNoSlots, kNoSlots}); }

  Program finish() {
    std::vector<Slots> sizes;
    for (const int stage : stages_) {
      Slots of_stage{};
      for (int pool = 0; pool < kPools; ++pool)
        of_stage[static_cast<std::size_t>(pool)] = pool_of(stage, static_cast<Pool>(pool)).size();
      sizes.push_back(of_stage);
    }
    return {stages_, std::move(sizes), std::move(actions_)};
  }

  const std::vector<int>& stages() const { return stages_; }

 private:
  using PoolKey = std::pair<int, Pool>;
  SlotPool& pool_of(int stage, Pool pool) { return pools_[PoolKey{stage, pool}]; }
  static std::int32_t& slot(Slots& slots, Pool pool) { return slots[static_cast<std::size_t>(pool)]; }

  void fill(ProgramAction& action, const Use& use) {
    const int stage = action.stage + use.stage_offset;
    if (stage < 0 || stage >= stages_total_) return; // the pipeline's ends hand nothing on
    slot(use.stage_offset == 0 ? action.own : action.handed, use.pool) =
        pool_of(stage, use.pool).take(action.microbatch);
  }
  /// Without a backward nothing reads what a forward kept.
  void release_all(int stage, int microbatch) {
    for (int pool = 0; pool < kPools; ++pool) pool_of(stage, static_cast<Pool>(pool)).release(microbatch);
  }

  int stages_total_;
  bool keeps_stash_;
  std::vector<int> stages_;
  std::map<PoolKey, SlotPool> pools_;
  std::vector<ProgramAction> actions_;
};

bool ends_backward(Kind kind) {
  return kind == Kind::backward || kind == Kind::backward_weight;
}

} // namespace

Program lower(const Schedule& schedule, const PipelineShape& shape, int rank) {
  Lowering lowering(schedule, shape, rank, true);
  std::map<int, int> backwards; // by stage
  for (const Action& action : schedule.row(rank)) {
    const Kind kind = kind_of(action.kind);
    lowering.add(kind, action.stage, action.microbatch);
    if (ends_backward(kind) && ++backwards[action.stage] == shape.microbatches)
      lowering.add(Kind::reduce_grad, action.stage);
  }
  lowering.add(Kind::reduce_tied);
  lowering.add(Kind::norm);
  lowering.add(Kind::opt_step);
  return lowering.finish();
}

Program lower_forward_only(const Schedule& schedule, const PipelineShape& shape, int rank) {
  Lowering lowering(schedule, shape, rank, false);
  const std::vector<int> stages = lowering.stages();
  for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch)
    for (const int stage : stages) lowering.add(Kind::forward, stage, microbatch);
  return lowering.finish();
}

} // namespace triax::schedule
