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
#include <span>
#include <string>

#include "triax/scheduler.hpp"

namespace triax::schedule {

/// F B I W come from schedulers, in the order of triax::ComputeKind; lowering adds the rest.
enum class Kind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  reduce_grad,
  reduce_tied,
  norm,
  opt_step
};
inline constexpr int kKinds = 8;

/// Pools of a stage. input_*: what arrives from the stage before, by its last reader; stash_*: what the stage's layers
/// keep; gradient: of the stage's outputs, arriving from the stage after.
enum class Pool : std::uint8_t { input_f, input_i, input_w, stash_i, stash_w, stash_iw, gradient };
inline constexpr int kPools = 7;
const char* name_of(Pool pool) noexcept;

/// What one action of a kind is about, and so what its text names: "3F1", "3REDUCE_GRAD", "NORM".
enum class Scope : std::uint8_t { microbatch, stage, rank };

/// The list an action belongs to. Transfers between ranks will be a second one.
enum class StreamClass : std::uint8_t { compute };

/// Other actions that must have finished before an action may start.
struct Need {
  enum class Where : std::uint8_t { here, stage_before, stage_after, everywhere };
  Kind kind;                 // a whole backward answers for both of its halves
  Where where = Where::here; // of the same microbatch on that stage; everywhere: all of them on the rank
};

/// A pool of the action's own stage, or of a neighbour's.
struct Use {
  Pool pool;
  int stage_offset = 0;
};

struct Rule {
  Kind kind;
  const char* name; // as text and CSV write it
  Scope scope;
  StreamClass stream;
  std::span<const Need> needs;
  std::span<const Use> fills; // a slot is taken when the action starts
  std::span<const Pool> reads;
  std::span<const Pool> frees; // when the action has finished
};

const Rule& rule(Kind kind) noexcept;
std::span<const Rule> rules() noexcept;

inline Kind kind_of(ComputeKind kind) noexcept {
  return static_cast<Kind>(kind);
}

/// Whether the action has the pool's slot at hand: it reads or fills it, on its own stage.
bool touches(Kind kind, Pool pool) noexcept;

/// "3F1", "3REDUCE_GRAD", "NORM"; without a microbatch (-1) "3F".
std::string action_text(Kind kind, int stage, int microbatch);

} // namespace triax::schedule
