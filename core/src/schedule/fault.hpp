// What the proof has against a schedule or its programs, as data: which rule is broken, by which actions, and where
// they stand. All of its words are made here.
//
// Threads: values and pure functions. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/assumptions.hpp"
#include "schedule/rules.hpp"
#include "triax/device.hpp"

namespace triax::schedule {

/// An action, and where it stands in the row or program of its rank.
struct Standing {
  int rank = -1;
  std::optional<ActionId> position{}; // from 0; empty: it is in no list
  Kind kind = Kind::forward;
  int stage = -1, microbatch = -1, slice = 0, replica = 0;
};
/// "3F1", and for a slice or a second pipeline "3F1.2'"
std::string action_text(const Standing& action);

/// How a reader finds an action: here by rank and position, from 0.
class Finding {
 public:
  virtual ~Finding() = default;
  /// What a fault begins with: "rank 2, position 3, 2B0", or without a name or a position what there is. Empty where
  /// the action has no rank.
  virtual std::string lead(const Standing& action, const std::string& name) const;
  /// "rank 2, position 3"
  virtual std::string place(const Standing& action) const;
  /// "position 3", of the rank that the fault is about
  virtual std::string here(const Standing& action) const;
  /// "position 3 of rank 2"
  virtual std::string there(const Standing& action) const;
};

struct Fault {
  enum class Rule : std::uint8_t {
    // of a schedule or of its programs as a whole
    rows_per_rank,     // has rows, wanted
    synchronous,       // has steps of delay
    one_pipeline,      // has replicas
    all_stages,        // has stages, wanted
    stage_on_a_rank,   // of at.stage: has a rank, and there are as many as wanted
    programs_by_rank,  // has the number of a program, wanted: whose it is
    programs_per_rank, // has programs, wanted
    one_stage_map,     // at.rank
    one_boundary,      // at.rank
    // of one action
    known_kind,       // has the number of a kind
    known_stage,      // wanted: the last
    known_microbatch, // wanted: the last
    names_microbatch,
    whole_sequence,
    on_its_rank, // has: the rank of the stage
    forward_alone,
    once,       // others: the first, as the half of a backward that is there twice
    present,    // at is missing
    before,     // others: what it needs; without a position if it is nowhere
    ascending,  // others: what comes later, or came before
    within_cap, // wanted: the most
    // of a transfer and its other end
    to_another_rank,   // wanted: the offset of its neighbour stage
    to_the_right_rank, // has a rank, wanted
    post_waits_for_none,
    waits_for_earlier,  // others: what it waits for
    waits_for_transfer, // others: what it waits for
    joined,             // others: what it should wait for
    one_order_per_edge, // has: its number on the edge; others: what stands there at the other end
    received,           // has: the rank that does not
    sent,               // has: the rank that does not
    // of all ranks
    reached,   // others: what it waits for
    no_circle, // others: what each waits for, as many as are named; has: how many more there are; assumptions
    // of slots
    slot_named,    // pool
    slot_exists,   // pool, slot
    slot_free,     // pool, slot; has the microbatch in it
    slot_filled,   // pool, slot
    slot_settled,  // pool, slot; others: the transfer
    slot_left_free // pool, slot; has the microbatch in it; at: rank and stage
  };

  Rule rule;
  Standing at{};
  std::vector<Standing> others{};
  int has = 0, wanted = 0;
  Pool pool = Pool::input_f;
  int slot = -1;
  Assumptions assumptions{};

  /// Slots are given out by lowering; no row and no file names them.
  bool is_of_slots() const noexcept { return rule >= Rule::slot_named; }
  /// "rank 2, position 3, 2B0: it needs 2F0, which comes later, at position 5"
  std::string reason(const Finding& finding = Finding()) const;
};

} // namespace triax::schedule
