// SPDX-License-Identifier: Apache-2.0
// A rank's program: the lowered form of a schedule. The executor runs exactly these actions.
//
// Threads: read-only after construction; any thread. Ownership: owns its lists and its labels, whose addresses are
// stable. A stream keeps pointers to labels, so the program must outlive the stream.
// The id of an action is its index. The program assigns all slots, so memory is sized before the first step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "schedule/rules.hpp"
#include "triax/device.hpp"

namespace triax::schedule {

/// The slot of each pool that an action uses; -1: none.
using Slots = std::array<std::int32_t, kPools>;
inline constexpr Slots kNoSlots = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
static_assert(kNoSlots.back() == -1);

struct ProgramAction {
  Kind kind = Kind::forward;
  std::int32_t stage = -1;      // -1: whole rank
  std::int32_t microbatch = -1; // -1: not for a single microbatch
  Slots own = kNoSlots;         // slots in pools of the action's stage
  Slots handed = kNoSlots;      // slots that it fills in pools of a neighbour stage on the same rank
  std::int32_t peer = -1;       // for a send or receive: the other pipeline rank
  /// If gradients are scattered, the slot of the stage's accumulator: of its first backward, which finds zeros there,
  /// and of its REDUCE_GRAD, which frees it.
  std::int32_t accumulator = -1;
  /// With Sharding::parameters, the slot of the stage's weights: of UNSHARD, of passes that read them, and of RESHARD.
  std::int32_t weights = -1;
  std::vector<ActionId> waits{}; // transfers that must be complete first, unless an earlier action waited for them
};

/// The sizes of a rank's pools.
struct RankSlots {
  std::vector<Slots> of_stages; // by stage of the rank
  int accumulators = 0, weight_slots = 0;
  bool operator==(const RankSlots&) const = default;
};

/// A program that was moved from can only be assigned or destroyed.
class Program {
 public:
  /// How sends and receives are posted: one by one in program order, or each maximal run of them as one set, which is
  /// ordered only within each edge.
  enum class Posts : std::uint8_t { one_by_one, sets };

  Program() = default;
  /// `slots`: for each stage of `rank`, the size of each pool.
  Program(StageMap stage_map, int rank, std::vector<Slots> slots, std::vector<ProgramAction> actions,
          Posts posts = Posts::one_by_one, Boundaries boundaries = Boundaries::whole,
          Sharding sharding = Sharding::none);

  std::span<const ProgramAction> actions() const { return actions_->list; }
  bool has(Kind kind) const;
  /// Whether R precedes the backwards of a stage of this rank. If not, B and I recompute.
  bool recomputes(int stage) const;
  /// Text of an action, NUL-terminated: "3F1".
  const char* label(ActionId action) const { return actions_->labels.data() + actions_->label_at.at(action); }
  const StageMap& stage_map() const { return stage_map_; }
  int rank() const { return rank_; } // on the pipeline axis
  Posts posts() const { return posts_; }
  Boundaries boundaries() const { return boundaries_; }
  Sharding sharding() const { return sharding_; }
  /// The stages of this rank, ascending.
  std::span<const int> stages() const { return stage_map_.stages_of(rank_); }
  /// Number of slots that a stage of this rank needs in a pool, that is, its microbatch chunks in flight.
  int slots(int stage, Pool pool) const;
  /// If gradients are scattered: the slot of the accumulator of a stage of this rank, and the number of these slots.
  /// Otherwise -1 and 0.
  int accumulator(int stage) const;
  int accumulators() const;
  /// With Sharding::parameters: the number of slots for the weights of a stage. Otherwise 0.
  int weight_slots() const;
  RankSlots rank_slots() const;
  /// The same actions, with pools of other sizes.
  Program with_slots(std::vector<Slots> slots) const;

 private:
  struct Actions {
    std::vector<ProgramAction> list;
    std::vector<std::size_t> label_at;
    std::vector<char> labels;
    std::vector<bool> recomputes; // by stage of the rank
  };

  bool is_here(int stage) const {
    return stage >= 0 && stage < stage_map_.stages() && stage_map_.rank_of(stage) == rank_;
  }

  StageMap stage_map_;
  int rank_ = 0;
  Posts posts_ = Posts::one_by_one;
  Boundaries boundaries_ = Boundaries::whole;
  Sharding sharding_ = Sharding::none;
  std::vector<Slots> slots_;
  std::shared_ptr<const Actions> actions_ = std::make_shared<Actions>(); // copies of a program share them
};

} // namespace triax::schedule
