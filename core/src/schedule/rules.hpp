// SPDX-License-Identifier: Apache-2.0
// The rule table: one row per kind of action of the lowered form, with its name, the actions it needs, the pools of a
// stage that it reads, fills and frees, and where it runs. It is the only source of these rules: verification,
// lowering, execution and traces use it. The pools of a rank, accumulator and weights, are not in it: RankLowering
// assigns their slots, SlotCount (slot_count.hpp) counts them, and StageSlots (stage_slots.hpp) verifies them.
//
// Threads: constants, any thread.
//
// A stage keeps tensors in pools of slots, one slot per microbatch in flight. The tensors of a pool have the same
// lifetime: from the action that fills the slot to the action that frees it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::schedule {

/// F, B, I and W come from schedulers, in the order of triax::ComputeKind; lowering adds the other kinds.
enum class Kind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  recompute, // repeats the part of the forward that B or I reads first; directly before it, see Stage::run()
  send_f,    // the stage is the producer; to the rank of the next stage
  recv_f,    // the stage is the consumer
  send_b,    // the stage is the producer; to the rank of the previous stage
  recv_b,
  gather_f, // the stage is the consumer; gathers a scattered boundary, see Boundaries
  gather_b,
  reduce_grad,
  reduce_tied,
  norm,
  opt_step,
  gather_param, // all-gather of the parameters that the stage's ranks have updated in parts, see Sharding
  unshard,      // all-gather of a stage's weights before passes that read them, see Sharding
  reshard       // drops them
};
inline constexpr int kKinds = 18;

/// How the tensors between two stages are sent. All ranks of a tensor group hold the same tensors. whole: each rank
/// sends the whole tensor to the same tensor rank of the next stage. scattered: each rank sends its part, one of t, and
/// the receivers gather the parts in their tensor group before a pass reads them (Narayanan et al., "Efficient
/// Large-Scale Language Model Training", SC'21, section 4.1).
enum class Boundaries : std::uint8_t { whole, scattered };

/// The state that the ranks with equal parameters divide among them (Rajbhandari et al., "ZeRO", SC'20). none: nothing.
/// states: the optimizer's state, and master weights beside working weights. Each rank updates its part, and
/// GATHER_PARAM gathers the parts. gradients: reduced gradients too. REDUCE_GRAD scatters them to their owners, and
/// another stage of the rank may then use the memory in which they were accumulated. parameters: working weights too.
/// In place of GATHER_PARAM, UNSHARD gathers the weights of a stage before passes that read them, and RESHARD drops
/// them after these.
enum class Sharding : std::uint8_t { none, states, gradients, parameters };

/// Whether each rank gets the reduced gradients of its part only.
constexpr bool scatters_gradients(Sharding sharding) noexcept {
  return sharding >= Sharding::gradients;
}
/// Whether a step ends with the all-gather of what the ranks have updated.
constexpr bool gathers_updates(Sharding sharding) noexcept {
  return sharding == Sharding::states || sharding == Sharding::gradients;
}

/// With Sharding::parameters, the number of uses ahead for which weights are gathered. A use of a stage is a sequence
/// of passes of a rank that read the weights of no other stage. 0: a gather does not overlap with passes.
inline constexpr int kDefaultPrefetch = 1;

/// Pools of a stage. input_*: inputs from the previous stage, by their last reader (F, I, W). stash_*: tensors that
/// layers keep, by the passes that use them. gradient: gradients of the stage's outputs, from the next stage. output
/// and input_gradient: tensors to send to a neighbour stage on another rank. accumulator: the gradients of a stage's
/// parameters, from its first backward to its REDUCE_GRAD. weights: those of a stage, from UNSHARD to RESHARD. These
/// two pools are of the rank, with one slot for a stage.
enum class Pool : std::uint8_t {
  input_f,
  input_i,
  input_w,
  stash_i,
  stash_w,
  stash_iw,
  gradient,
  output,
  input_gradient,
  accumulator,
  weights
};
inline constexpr int kPools = 9; // of a stage: those before accumulator
const char* name_of(Pool pool) noexcept;

/// The scope of a kind of action: what it applies to, and so the numbers in its text: "3F1", "3REDUCE_GRAD", "NORM".
enum class Scope : std::uint8_t { microbatch, stage, rank };

/// Whether an action computes or transfers. Compute actions of a rank run one after another. A transfer is posted at
/// its position among them, and is complete only when an action waits for it.
enum class StreamClass : std::uint8_t { compute, transfer };

/// The facts that are true of a stage and its program, and for R of its action: a set of those below. The parts of
/// rules have conditions on them, so that one table serves all modes.
using Facts = std::uint8_t;
inline constexpr Facts kBeforeHere = 1,  // the stage before exists, and is on this rank
    kBeforeElsewhere = 2,                // it exists, and is on another rank
    kAfterHere = 4, kAfterElsewhere = 8, // the same of the stage after
    kScattered = 16,                     // boundaries are scattered
    kForwardOnly = 32,                   // the program is an evaluation
    kRecomputed = 64,                    // R precedes each B and I of the stage
    kSplit = 128;                        // of R: I follows, and not B

/// The facts that must hold, and those that must not.
struct Condition {
  Facts all = 0, none = 0;
  constexpr bool holds(Facts facts) const noexcept { return (facts & all) == all && (facts & none) == 0; }
};

/// Actions that must have finished before an action may start.
struct Need {
  enum class Where : std::uint8_t { here, stage_before, stage_after, everywhere };
  Kind kind;                 // a whole backward satisfies needs for both halves
  Where where = Where::here; // same microbatch, on that stage; everywhere: all such actions of the rank
  Condition condition = {};
};

/// A pool that an action fills, reads or frees: of the stage of the action, or of a neighbour stage on the same rank.
struct Use {
  Pool pool;
  int stage_offset = 0;
  Condition condition = {};
};

struct Rule {
  Kind kind;
  const char* name; // name in texts and CSV files
  Scope scope;
  StreamClass stream;
  bool joins; // completes on no pipeline rank before it has started on all of them
  std::span<const Need> needs;
  std::span<const Use> fills; // the slot is taken when the action starts or is posted
  std::span<const Use> reads;
  std::span<const Use> frees; // when the action has finished
};

const Rule& rule(Kind kind) noexcept;
std::span<const Rule> rules() noexcept;

/// The kind with this name in texts and CSV files; empty if there is none.
std::optional<Kind> kind_named(std::string_view name) noexcept;

inline Kind kind_of(ComputeKind kind) noexcept {
  return static_cast<Kind>(kind);
}
/// F, B, I, W: the actions of rows.
inline bool is_of_rows(Kind kind) noexcept {
  return kind <= Kind::backward_weight;
}
/// F, B, I, W and R: passes.
inline bool runs_layers(Kind kind) noexcept {
  return kind <= Kind::recompute;
}
/// B, I, W: they add to gradients of parameters.
inline bool accumulates(Kind kind) noexcept {
  return is_of_rows(kind) && kind != Kind::forward;
}
/// B, I: they begin a backward, and read what R has computed.
inline bool begins_backward(Kind kind) noexcept {
  return kind == Kind::backward || kind == Kind::backward_input;
}
/// B, W: the last pass of a microbatch on a stage.
inline bool ends_backward(Kind kind) noexcept {
  return kind == Kind::backward || kind == Kind::backward_weight;
}
/// F, B, I, R.
inline bool reads_weights(Kind kind) noexcept {
  return runs_layers(kind) && kind != Kind::backward_weight;
}
inline bool gathers(Kind kind) noexcept {
  return kind == Kind::gather_f || kind == Kind::gather_b;
}
inline bool is_transfer(Kind kind) noexcept {
  return rule(kind).stream == StreamClass::transfer;
}
inline bool sends(Kind kind) noexcept {
  return kind == Kind::send_f || kind == Kind::send_b;
}
inline bool receives(Kind kind) noexcept {
  return kind == Kind::recv_f || kind == Kind::recv_b;
}

/// Stage at the other end of a transfer, minus the stage of the transfer.
inline int peer_offset(Kind transfer) noexcept {
  return transfer == Kind::send_f || transfer == Kind::recv_b ? 1 : -1;
}

/// The stage map: the rank of each stage. Copies share the data, because every program of a pipeline has a copy.
class StageMap {
 public:
  StageMap() = default;
  /// Throws Error if a rank is negative.
  explicit StageMap(const std::vector<int>& stage_rank);

  int stages() const noexcept { return shared_ ? static_cast<int>(shared_->entries.size()) : 0; }
  /// Throws Error if the stage does not exist, as number_on_rank() does.
  int rank_of(int stage) const { return at(stage).rank; }
  /// Ascending.
  std::span<const int> stages_of(int rank) const noexcept;
  /// Number of the stage among the stages of its rank, from 0.
  int number_on_rank(int stage) const { return at(stage).number; }
  /// The facts about its neighbours; none for a stage that does not exist.
  Facts facts(int stage) const noexcept {
    return exists(stage) ? shared_->entries[static_cast<std::size_t>(stage)].facts : Facts{0};
  }
  bool has(int stage, Facts all) const { return (facts(stage) & all) == all; }
  bool operator==(const StageMap& other) const;

 private:
  struct StageEntry {
    int rank = 0, number = 0;
    Facts facts = 0;
  };
  struct Shared {
    std::vector<StageEntry> entries;       // by stage
    std::vector<std::vector<int>> of_rank; // the stages of each rank, ascending
  };
  [[noreturn]] static void refuse(int stage);
  bool exists(int stage) const noexcept { return stage >= 0 && stage < stages(); }
  const StageEntry& at(int stage) const {
    if (!exists(stage)) refuse(stage);
    return shared_->entries[static_cast<std::size_t>(stage)];
  }

  std::shared_ptr<const Shared> shared_; // null: no stages
};

/// All facts of a stage in a program.
inline Facts facts_of(const StageMap& stage_map, int stage, Boundaries boundaries, bool forward_only, bool recomputed) {
  Facts out = stage_map.facts(stage);
  if (boundaries == Boundaries::scattered) out |= kScattered;
  if (forward_only) out |= kForwardOnly;
  if (recomputed) out |= kRecomputed;
  return out;
}

/// The stage of the needed action, for an action on `stage`; it may be outside the pipeline.
inline int stage_of(const Need& need, int stage) noexcept {
  return stage + (need.where == Need::Where::stage_after ? 1 : 0) - (need.where == Need::Where::stage_before ? 1 : 0);
}

/// A pass and its stage: what a need leads to when transfers are skipped, because rows have no transfers.
struct Computing {
  Kind kind;
  int stage;
};
Computing computing_of(Need need, int stage) noexcept;

/// Whether an action reads or fills the pool on its own stage.
bool touches(Kind kind, Pool pool) noexcept;

/// "3F1", "3REDUCE_GRAD", "NORM"; with microbatch -1 "3F".
std::string action_text(Kind kind, int stage, int microbatch);

} // namespace triax::schedule
