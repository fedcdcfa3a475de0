// A rank's program: the lowered form of a schedule. The executor walks it and adds nothing.
//
// Threads: read-only once made; any thread. Ownership: owns its lists and its labels, which stay where they are for the
// program's life; whoever hands labels to a stream keeps the program as long as the stream. Blocking: never.
// An action's id is its index. Slots are fixed here, so memory is sized before the first step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/rules.hpp"
#include "triax/device.hpp"

namespace triax::schedule {

/// The slot of each pool an action works on; -1: none.
using Slots = std::array<std::int32_t, kPools>;
inline constexpr Slots kNoSlots = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
static_assert(kNoSlots.back() == -1);

struct ProgramAction {
  Kind kind = Kind::forward;
  std::int32_t stage = -1;       // -1: of the whole rank
  std::int32_t microbatch = -1;  // -1: of no single one
  Slots own = kNoSlots;          // in pools of its own stage
  Slots handed = kNoSlots;       // in pools of a neighbour stage on the same rank, which it fills
  std::int32_t peer = -1;        // of a send or receive: the other pipeline rank
  std::vector<ActionId> waits{}; // transfers that must be complete before it starts, if none before has waited for them
};

class Program {
 public:
  /// How sends and receives are posted: one after another as they stand, or each maximal run of them at once, in no
  /// order but that of their edges.
  enum class Posts : std::uint8_t { one_by_one, sets };

  Program() = default;
  /// `slots`: for each stage that `stage_map` gives to `rank`, the size of each pool.
  Program(StageMap stage_map, int rank, std::vector<Slots> slots, std::vector<ProgramAction> actions,
          Posts posts = Posts::one_by_one, Boundaries boundaries = Boundaries::whole);

  std::span<const ProgramAction> actions() const { return actions_; }
  /// Zero-ended text of an action: "3F1".
  const char* label(ActionId action) const { return labels_.data() + label_at_.at(action); }
  const StageMap& stage_map() const { return stage_map_; }
  int rank() const { return rank_; } // on the pipeline axis
  Posts posts() const { return posts_; }
  Boundaries boundaries() const { return boundaries_; }
  /// The stages this rank holds, ascending.
  std::span<const int> stages() const { return stage_map_.stages_of(rank_); }
  /// How many slots a stage of this rank needs in a pool: its microbatches in flight.
  int slots(int stage, Pool pool) const;

 private:
  StageMap stage_map_;
  int rank_ = 0;
  Posts posts_ = Posts::one_by_one;
  Boundaries boundaries_ = Boundaries::whole;
  std::vector<Slots> slots_;
  std::vector<ProgramAction> actions_;
  std::vector<std::size_t> label_at_;
  std::vector<char> labels_; // one block: a moved program's labels stay where they are
};

} // namespace triax::schedule
