// SPDX-License-Identifier: Apache-2.0
// Verification violations of a schedule or its programs, as data: the broken rule, the actions involved and their
// positions. The messages are created here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/assumptions.hpp"
#include "schedule/rules.hpp"
#include "triax/device.hpp"

namespace triax::schedule {

/// An action, and its position in the row or program of its rank.
struct ActionRef {
  int rank = -1;
  std::optional<ActionId> position{}; // from 0; empty: not in any list
  Kind kind = Kind::forward;
  int stage = -1, microbatch = -1, slice = 0, replica = 0;
};
/// "3F1"; with a slice and a second pipeline "3F1.2'".
std::string action_text(const ActionRef& action);

/// How messages locate an action; the default is by rank, from 0, and position, from 1.
class Locator {
 public:
  virtual ~Locator() = default;
  /// Start of a message: "rank 2, action 3, 2B0". Leaves out a missing name or position; empty if the action has no
  /// rank.
  virtual std::string lead(const ActionRef& action, const std::string& name) const;
  /// "rank 2, action 3"
  virtual std::string location(const ActionRef& action) const;
  /// "action 3", for an action on the rank of the violation.
  virtual std::string here(const ActionRef& action) const;
  /// "action 3 of rank 2"
  virtual std::string there(const ActionRef& action) const;
};

/// How many violations of one schedule a report lists: a scheduler's mistake is often the same on every rank.
inline constexpr std::size_t kMaxShownViolations = 20;

struct Violation {
  enum class Rule : std::uint8_t {
    // the schedule or its programs as a whole; the fields that each rule uses are listed
    rows_per_rank,     // has: rows, wanted: ranks
    one_pipeline,      // has: replicas
    all_stages,        // has: stages, wanted: stages
    stage_on_a_rank,   // at.stage; has: its rank, wanted: number of ranks
    rank_with_a_stage, // at.rank
    programs_by_rank,  // has: index of the program, wanted: its rank
    programs_per_rank, // has: programs, wanted: ranks
    one_stage_map,     // at.rank
    one_boundary,      // at.rank
    one_sharding,      // at.rank
    // one action
    known_kind,       // has: number of the kind
    known_stage,      // wanted: the last stage
    known_microbatch, // wanted: the last microbatch
    names_microbatch,
    whole_sequence,
    on_its_rank, // has: rank of the stage
    forward_alone,
    once,       // others: the first one, as the half of a backward that is repeated
    present,    // at: the missing action
    before,     // others: the needed action, without a position if it is missing
    ascending,  // others: the action that is out of order
    within_cap, // wanted: the maximum
    next_pass,  // others: the pass that comes next; empty: there is none
    // a transfer and its other end
    to_another_rank,   // has: 1 if its neighbour stage exists, on the same rank; wanted: offset of this stage
    to_the_right_rank, // has: its peer, wanted: the rank of the stage
    post_waits_for_none,
    waits_for_earlier,  // others: the action it waits for
    waits_for_transfer, // others: the action it waits for
    joined,             // others: the transfer it must wait for
    one_order_per_edge, // has: its number on the edge; others: the action with this number at the other end
    received,           // has: the rank that does not receive
    sent,               // has: the rank that does not send
    // all ranks
    reached,  // others: the action it waits for
    no_cycle, // others: the listed actions of the cycle; has: number of further actions; assumptions
    // slots
    slot_named,    // pool
    slot_exists,   // pool, slot
    slot_free,     // pool, slot; has: the microbatch in it, or the stage
    slot_filled,   // pool, slot
    slot_settled,  // pool, slot; others: the transfer
    slot_left_free // pool, slot; has: the microbatch in it; at: rank and stage
  };

  Rule rule;
  ActionRef at{};
  std::vector<ActionRef> others{};
  int has = 0, wanted = 0;
  Pool pool = Pool::input_f;
  int slot = -1;
  Assumptions assumptions{};

  /// Whether the rule is about slots. Lowering assigns them; rows and files do not contain them.
  bool is_of_slots() const noexcept { return rule >= Rule::slot_named; }
  /// "rank 2, action 3, 2B0: it needs 2F0, which comes later, at action 5"
  std::string reason(const Locator& locator = Locator()) const;
  /// "move 2F0 before 2B0"; empty: no change of the order is known that ends the violation.
  std::string remedy() const;
};

} // namespace triax::schedule
