// The rule table: one row per kind of action of the lowered form. What a kind is called, what it needs before it, which
// pools of slots it reads, fills and frees, and where it runs stands here and nowhere else; verification, lowering,
// execution and trace read it.
//
// Threads: constants, any thread. Ownership: none. Blocking: never.
//
// Stages keep tensors in pools of slots, one slot per microbatch in flight. A pool is named by how long a slot of it
// lives: from the action that fills it to the action that frees it.
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

/// F B I W come from schedulers, in the order of triax::ComputeKind; lowering adds the rest.
enum class Kind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  send_f, // of the stage whose forward it was, to the rank of the stage after
  recv_f, // of the stage whose forward it will be
  send_b, // of the stage whose input gradient it was, to the rank of the stage before
  recv_b,
  gather_f, // of the stage whose forward it will be: from parts, see Boundaries
  gather_b,
  reduce_grad,
  reduce_tied,
  norm,
  opt_step
};
inline constexpr int kKinds = 14;

/// How the tensors between two stages go from one rank to another. All ranks of a tensor group hold the same: each
/// sends the whole to its like in the next group, or, scattered, its part of it (one of t), and those who receive
/// gather the parts inside their group before a pass reads them (Narayanan et al., "Efficient Large-Scale Language
/// Model Training", SC'21, section 4.1).
enum class Boundaries : std::uint8_t { whole, scattered };

/// Pools of a stage. input_*: what arrives from the stage before, by its last reader; stash_*: what the stage's layers
/// keep; gradient: of the stage's outputs, arriving from the stage after. output and input_gradient: what leaves for a
/// neighbour stage on another rank.
enum class Pool : std::uint8_t {
  input_f,
  input_i,
  input_w,
  stash_i,
  stash_w,
  stash_iw,
  gradient,
  output,
  input_gradient
};
inline constexpr int kPools = 9;
const char* name_of(Pool pool) noexcept;

/// What one action of a kind is about, and so what its text names: "3F1", "3REDUCE_GRAD", "NORM".
enum class Scope : std::uint8_t { microbatch, stage, rank };

/// The list an action belongs to. The compute list runs one after another; a transfer is posted at its place among
/// them, and is complete only where an action waits for it.
enum class StreamClass : std::uint8_t { compute, transfer };

/// Where a neighbour stage has to be for a need or a use to count. At the pipeline's ends there is none, and only
/// `always` holds.
enum class If : std::uint8_t { always, before_here, before_elsewhere, after_here, after_elsewhere };

/// Other actions that must have finished before an action may start.
struct Need {
  enum class Where : std::uint8_t { here, stage_before, stage_after, everywhere };
  Kind kind;                 // a whole backward answers for both of its halves
  Where where = Where::here; // of the same microbatch on that stage; everywhere: all of them on the rank
  If condition = If::always;
};

/// A pool of the action's own stage, or of a neighbour's on the same rank.
struct Use {
  Pool pool;
  int stage_offset = 0;
  If condition = If::always;
};

struct Rule {
  Kind kind;
  const char* name; // as text and CSV write it
  Scope scope;
  StreamClass stream;
  bool joins; // a meeting of all pipeline ranks: none has finished before all have begun
  std::span<const Need> needs;
  std::span<const Use> fills; // a slot is taken when the action starts, or is posted
  std::span<const Pool> reads;
  std::span<const Pool> frees; // when the action has finished
};

const Rule& rule(Kind kind) noexcept;
std::span<const Rule> rules() noexcept;

/// As text and CSV write it; empty: no kind has that name.
std::optional<Kind> kind_named(std::string_view name) noexcept;

inline Kind kind_of(ComputeKind kind) noexcept {
  return static_cast<Kind>(kind);
}
/// F, B, I, W.
inline bool runs_layers(Kind kind) noexcept {
  return kind <= Kind::backward_weight;
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

/// From the stage of a send or receive to that of its other end.
inline int peer_offset(Kind transfer) noexcept {
  return transfer == Kind::send_f || transfer == Kind::recv_b ? 1 : -1;
}

/// Which rank has which stage. Copies share what they know: every program of a pipeline has the whole map.
class StageMap {
 public:
  StageMap() = default;
  /// Error at a negative rank.
  explicit StageMap(std::vector<int> stage_rank);

  int stages() const noexcept { return shared_ ? static_cast<int>(shared_->rank.size()) : 0; }
  int rank_of(int stage) const { return at(stage).rank.at(static_cast<std::size_t>(stage)); }
  /// Ascending.
  std::span<const int> stages_of(int rank) const noexcept;
  /// Which of its rank's stages it is, from 0.
  int number_on_rank(int stage) const { return at(stage).number.at(static_cast<std::size_t>(stage)); }
  bool holds(If condition, int stage) const;
  bool operator==(const StageMap& other) const;

 private:
  struct Shared {
    std::vector<int> rank, number;         // by stage
    std::vector<std::vector<int>> of_rank; // ascending
  };
  const Shared& at(int stage) const;
  bool beside(int stage, int neighbour, bool here) const;

  std::shared_ptr<const Shared> shared_; // null: no stages
};

/// The stage that a need of an action on `stage` is about; it may lie beyond the pipeline's ends.
inline int stage_of(const Need& need, int stage) noexcept {
  return stage + (need.where == Need::Where::stage_after ? 1 : 0) - (need.where == Need::Where::stage_before ? 1 : 0);
}

/// What a kind needs in programs; the table has what it needs where boundaries are whole.
std::span<const Need> needs(Kind kind, Boundaries boundaries) noexcept;

/// What a need leads to through transfers, which rows do not have: computing, and its stage.
struct Computing {
  Kind kind;
  int stage;
};
Computing computing_of(Need need, int stage) noexcept;

/// A forward without a backward keeps nothing: it frees what backwards would.
std::span<const Pool> frees(Kind kind, bool forward_only) noexcept;

/// Whether the action has the pool's slot at hand: it reads or fills it, on its own stage.
bool touches(Kind kind, Pool pool) noexcept;

/// "3F1", "3REDUCE_GRAD", "NORM"; without a microbatch (-1) "3F".
std::string action_text(Kind kind, int stage, int microbatch);

} // namespace triax::schedule
