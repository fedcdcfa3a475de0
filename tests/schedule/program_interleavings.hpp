// SPDX-License-Identifier: Apache-2.0
// Exhaustive search over programs: ranks run their lists, and posted transfers complete in every order that the
// assumptions allow. What actions read and fill, the matching of transfers and the queues are written here by hand;
// only the programs are shared with the verifier.
//
// Threads: one. Ownership: values. Blocking: never. For up to 64 transfers.
//
// Faults are: a rank that waits forever; a slot that is read before it has its data; a slot that is read or written
// while a transfer may still write or read it (from the post until the transfer is complete); two ends of a transfer
// with different data; an action that is missing, repeated, or adds data that does not exist yet; a pass between R and
// its B or I. A buffered send completes without its receive, but not inside its post: until then the transport copies.
#pragma once

#include <compare>
#include <set>
#include <utility>

#include "schedule/interleavings.hpp"
#include "schedule/slots_by_hand.hpp"
#include "schedule/stage_slots_by_hand.hpp"
#include "schedule/verify.hpp"

namespace triax::test {

class ProgramsSpace {
 public:
  /// `that_differ` merges orders that differ only in the completion of a transfer that no later step can conflict with.
  /// Such a transfer completes as soon as it can, before all else, which prevents no other step. `all` tries these
  /// orders too.
  enum class Orders { that_differ, all };

  struct State {
    std::uint64_t complete = 0; // by transfer
    Progress reached{};
    auto operator<=>(const State&) const = default;
  };

  ProgramsSpace(std::span<const schedule::Program> programs, const schedule::Purpose& purpose,
                const schedule::Assumptions& assumptions, Orders orders = Orders::that_differ)
      : shape_(purpose.shape),
        assumptions_(assumptions),
        orders_(orders),
        scattered_(programs[0].boundaries() == schedule::Boundaries::scattered),
        slots_(programs),
        lists_(programs.size()) {
    for (const schedule::Program& program : programs) number(program);
    for (const schedule::Program& program : programs) {
      follow_slots(program);
      purpose.forward_only ? follow_forwards(program) : follow_sums(program);
      fault(slots_.recomputation_fault(program));
      queue(program);
    }
    if (fault_.empty()) match();
    for (const std::vector<Step>& list : lists_) {
      std::vector<Mask>& watched = watched_.emplace_back(list.size() + 1, 0);
      for (std::size_t at = list.size(); at-- > 0;)
        watched[at] = watched[at + 1] | (list[at].touched & ~list[at].waits);
    }
  }

  /// Rules that the verifier adds although their violation does no harm here, with its reasons (schedule/verify.hpp).
  bool sums_ascend() const {
    std::map<std::pair<int, bool>, int> last; // by stage; true: weight gradient
    bool ascend = true;
    for_each_step([&](const Step& step) {
      const schedule::ProgramAction& action = *step.action;
      for (const bool weight : {false, true}) {
        if (action.kind != Kind::backward && action.kind != (weight ? Kind::backward_weight : Kind::backward_input))
          continue;
        const auto [entry, first] = last.try_emplace({action.stage, weight}, action.microbatch);
        ascend = ascend && (first || entry->second < action.microbatch);
        entry->second = action.microbatch;
      }
    });
    return ascend;
  }
  bool edges_keep_one_order() const {
    bool one = true;
    for (const Transfer& send : transfers_)
      for (const Transfer& later : transfers_) {
        if (!is_send(action_of(send).kind) || !is_send(action_of(later).kind)) continue;
        if (send.other == kNone || later.other == kNone || send.rank != later.rank || send.at >= later.at) continue;
        const Transfer &receive = transfers_[send.other], &later_receive = transfers_[later.other];
        one = one && (receive.rank != later_receive.rank || receive.at < later_receive.at);
      }
    return one;
  }
  bool waits_are_named() const {
    Mask posted = 0, waited = 0; // a step uses only transfers of the same rank, so ranks can share these
    bool named = true;
    for_each_step([&](const Step& step) {
      waited |= step.waits;
      const Mask of_rank = posted & own_[at(step.rank)];
      named = named && ((step.touched | (is_sync_point(step.action->kind) ? of_rank : 0)) & ~waited) == 0;
      posted |= step.own;
    });
    return named;
  }

  State begin() const { return {}; }
  bool is_end(const State& state) const {
    bool ended = state.complete == all_;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank)
      ended = ended && state.reached[rank] == lists_[rank].size();
    return ended;
  }

  std::string next(const State& state, std::vector<State>& out) const {
    if (!fault_.empty()) return fault_;
    if (orders_ == Orders::that_differ)
      for (const Transfer& transfer : transfers_)
        if ((watched_[transfer.rank][state.reached[transfer.rank]] & transfer.bit) == 0 &&
            complete(transfer, state, out))
          return {};
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      if (state.reached[rank] == lists_[rank].size() || !can_run(rank, state)) continue;
      const Step& step = lists_[rank][state.reached[rank]];
      if ((step.touched & ~state.complete) != 0) return step.text + " uses a slot of a pending transfer";
      out.push_back(state);
      ++out.back().reached[rank];
    }
    for (const Transfer& transfer : transfers_) complete(transfer, state, out);
    return {};
  }

 private:
  using Kind = schedule::Kind;
  using Pool = schedule::Pool;
  using Mask = std::uint64_t;

  /// Masks are sets of transfers of any rank.
  struct Step {
    const schedule::ProgramAction* action = nullptr;
    int rank = 0;
    std::string text{};
    Mask own = 0;     // its own bit, if it is a transfer
    Mask waits = 0;   // waits of the program
    Mask held = 0;    // earlier blocking posts
    Mask touched = 0; // last users of its slots
  };
  struct Transfer {
    Mask bit;
    std::size_t rank, at;
    Mask before = 0;           // earlier in its queue
    std::size_t other = kNone; // the other end
    bool waits_for_other = false;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  static bool is_send(Kind kind) { return kind == Kind::send_f || kind == Kind::send_b; }
  static bool is_receive(Kind kind) { return kind == Kind::recv_f || kind == Kind::recv_b; }
  static bool is_edge(Kind kind) { return is_send(kind) || is_receive(kind); }
  /// Transfers among ranks with other samples.
  static bool is_of_samples(Kind kind) { return kind == Kind::reduce_grad || kind == Kind::unshard; }
  static bool is_gather(Kind kind) { return kind == Kind::gather_f || kind == Kind::gather_b; }
  static bool is_sync_point(Kind kind) { return kind == Kind::reduce_tied || kind == Kind::norm; }

  template <class Visit>
  void for_each_step(Visit visit) const {
    for (const std::vector<Step>& list : lists_)
      for (const Step& step : list) visit(step);
  }

  void fault(const std::string& what) {
    if (fault_.empty()) fault_ = what; // may be empty, too
  }

  void number(const schedule::Program& program) {
    const auto rank = static_cast<std::size_t>(program.rank());
    std::vector<Step>& list = lists_[rank];
    for (std::size_t at = 0; at < program.actions().size(); ++at) {
      const char* const label = program.label(static_cast<ActionId>(at));
      Step& step = list.emplace_back(Step{&program.actions()[at], program.rank(), label});
      if (!is_edge(step.action->kind) && !is_of_samples(step.action->kind)) continue;
      if (transfers_.size() == 64) throw std::runtime_error("more than 64 transfers");
      step.own = Mask{1} << transfers_.size();
      all_ |= step.own;
      own_[rank] |= step.own;
      transfers_.push_back({.bit = step.own, .rank = rank, .at = at});
    }
    for (std::size_t at = 0; at < list.size(); ++at)
      for (const ActionId waited : list[at].action->waits) {
        if (waited >= at) fault(list[at].text + " waits for what is posted later: it waits indefinitely");
        list[at].waits |= waited < list.size() ? list[waited].own : 0;
      }
  }

  struct Slot {
    int holds = -1;
    bool part = false; // has only a part of its data
    Mask writer = 0;   // if a receive filled it
    Mask touched = 0;  // by any transfer
  };

  /// Lists run in order, so the previous users of a slot are known without a search.
  void follow_slots(const schedule::Program& program) {
    std::map<std::tuple<int, Pool, int>, Slot> slots;
    StageSlotsByHand stage_slots(program.sharding());
    for (Step& step : lists_[static_cast<std::size_t>(program.rank())]) {
      const schedule::ProgramAction& action = *step.action;
      const auto slot_of = [&](int stage, Pool pool, const schedule::Slots& indexes) -> Slot& {
        const int index = indexes[static_cast<std::size_t>(pool)];
        if (index < 0 || index >= program.slots(stage, pool)) fault(step.text + " has no slot");
        return slots[{stage, pool, index}];
      };
      for (const Pool pool : slots_.reads(action)) {
        Slot& slot = slot_of(action.stage, pool, action.own);
        if (slot.holds != action.microbatch) fault(step.text + " reads a slot without its data");
        if (slot.part != is_gather(action.kind))
          fault(step.text + " takes a part for the whole, or the other way round");
        slot.part = false;
        step.touched |= slot.writer;
        slot.touched |= step.own;
      }
      for (const auto& [stage, pool] : slots_.fills(action)) {
        Slot& slot = slot_of(stage, pool, stage == action.stage ? action.own : action.handed);
        step.touched |= slot.touched;
        slot = {action.microbatch, scattered_ && is_receive(action.kind), step.own, slot.touched | step.own};
      }
      const StageSlotsByHand::Followed followed = stage_slots.follow(action, step.own);
      if (followed.fault) fault(step.text + " " + followed.fault);
      step.touched |= followed.touched;
    }
    if (!stage_slots.drops_all_weights()) fault("weights stay gathered");
  }

  static std::size_t at(int stage) { return static_cast<std::size_t>(stage); }

  void follow_forwards(const schedule::Program& program) {
    std::set<std::pair<int, int>> seen; // stages and microbatches
    for (const Step& step : lists_[at(program.rank())]) {
      if (step.own != 0 || step.action->kind == Kind::gather_f || step.action->kind == Kind::reshard) continue;
      if (step.action->kind != Kind::forward) fault(step.text + " is not a forward");
      if (!seen.emplace(step.action->stage, step.action->microbatch).second) fault(step.text + " is a duplicate");
    }
    if (seen.size() != program.stages().size() * at(shape_.microbatches)) fault("a forward is missing");
  }

  /// A stage's gradients are complete when they are reduced. All stages are reduced before the sync points. The two
  /// sync points and the optimizer step are in this order. Nothing is missing.
  void follow_sums(const schedule::Program& program) {
    std::map<int, int> halves; // number of backward halves, by stage
    std::set<int> reduced;
    std::set<std::tuple<Kind, int, int>> seen; // all actions
    Mask reductions = 0;
    std::size_t endings = 0, gathered = 0;
    std::set<int> stepped;
    for (Step& step : lists_[at(program.rank())]) {
      const schedule::ProgramAction& action = *step.action;
      if (action.kind == Kind::unshard || action.kind == Kind::reshard) continue; // for each use of the weights
      if (!seen.insert({action.kind, action.stage, action.microbatch}).second) {
        fault(step.text + " is a duplicate");
        return;
      }
      if (action.kind == Kind::backward) halves[action.stage] += 2;
      if (action.kind == Kind::backward_input || action.kind == Kind::backward_weight) ++halves[action.stage];
      if (action.kind == Kind::reduce_grad) {
        if (halves[action.stage] != 2 * shape_.microbatches) fault(step.text + " reduces a part");
        reduced.insert(action.stage);
        reductions |= step.own;
      }
      gathered += action.kind == Kind::gather_param;
      if (action.kind == Kind::gather_param && !stepped.contains(action.stage)) fault(step.text + " comes too early");
      if (action.kind != Kind::reduce_tied && action.kind != Kind::norm && action.kind != Kind::opt_step) continue;
      step.touched |= reductions;
      if (reduced.size() != program.stages().size()) fault(step.text + " comes before all is reduced");
      const Kind expected =
          std::array{Kind::reduce_tied, Kind::norm, Kind::opt_step}.at(std::min<std::size_t>(endings++, 2));
      if (action.kind != expected) fault(step.text + " comes before what it needs");
      if (action.kind == Kind::opt_step && !stepped.insert(action.stage).second) fault(step.text + " is a duplicate");
    }
    const bool gathers =
        program.sharding() == schedule::Sharding::states || program.sharding() == schedule::Sharding::gradients;
    if (stepped.size() != program.stages().size()) fault("the step does not end");
    if (gathers && gathered != stepped.size()) fault("parameters are not gathered");
  }

  const schedule::Guarantee& guarantee(Kind kind) const {
    if (is_edge(kind)) return assumptions_.edges;
    return is_of_samples(kind) ? assumptions_.reductions : assumptions_.layers;
  }
  /// True if a serial backend carries it; passes and gathers count because layers communicate.
  bool in_one_queue(Kind kind) const {
    const bool ending = is_sync_point(kind) || kind == Kind::opt_step || kind == Kind::gather_param;
    return !ending && kind != Kind::reshard && guarantee(kind).order == CommTraits::Order::serial;
  }

  /// Computes what must be complete before a transfer begins, and before the rank continues: earlier blocking posts;
  /// for work in a serial queue, earlier transfers of the queue; in channel order, earlier transfers of the edge.
  void queue(const schedule::Program& program) {
    const bool sets = program.posts() == schedule::Program::Posts::sets;
    std::map<std::pair<int, bool>, Mask> of_edge;
    Mask queued = 0, blocking = 0;         // of this rank
    Mask run_queued = 0, run_blocking = 0; // of the current set of posts
    bool run_goes_on = false;
    for (Step& step : lists_[at(program.rank())]) {
      const Kind kind = step.action->kind;
      if (step.own == 0 || !sets || !is_edge(kind) || !run_goes_on) {
        queued |= std::exchange(run_queued, 0);
        blocking |= std::exchange(run_blocking, 0);
      }
      run_goes_on = sets && is_edge(kind);
      step.held = blocking;
      if (step.own == 0) {
        if (in_one_queue(kind)) step.held |= queued;
        continue;
      }
      Transfer& transfer = transfer_of(step.own);
      Mask& before = of_edge[{step.action->peer, is_send(kind)}];
      if (in_one_queue(kind)) transfer.before = queued | before;
      if (guarantee(kind).order == CommTraits::Order::channel) transfer.before = before;
      before |= step.own;
      if (in_one_queue(kind)) run_queued |= step.own;
      if (guarantee(kind).post == CommTraits::Post::blocking) run_blocking |= step.own;
    }
  }
  Transfer& transfer_of(Mask bit) { return *std::ranges::find(transfers_, bit, &Transfer::bit); }

  const schedule::ProgramAction& action_of(const Transfer& transfer) const {
    return *lists_[transfer.rank][transfer.at].action;
  }
  /// Tags identify the data. Without tags, the k-th send of an edge matches its k-th receive.
  bool same_data(const Transfer& send, const Transfer& receive) const {
    const schedule::ProgramAction &from = action_of(send), &to = action_of(receive);
    const bool forwards = from.kind == Kind::send_f;
    return (forwards ? to.kind == Kind::recv_f : to.kind == Kind::recv_b) &&
           to.stage == from.stage + (forwards ? 1 : -1) && to.microbatch == from.microbatch;
  }
  bool can_match(const Transfer& send, const Transfer& receive) const {
    const bool same_edge = at(action_of(send).peer) == receive.rank && at(action_of(receive).peer) == send.rank;
    return same_edge && (assumptions_.edges.order != CommTraits::Order::tagged || same_data(send, receive));
  }
  void match() {
    for (std::size_t one = 0; one < transfers_.size(); ++one) {
      Transfer& send = transfers_[one];
      if (!is_send(action_of(send).kind)) continue;
      for (std::size_t other = 0; other < transfers_.size() && send.other == kNone; ++other) {
        Transfer& receive = transfers_[other];
        if (!is_receive(action_of(receive).kind) || receive.other != kNone || !can_match(send, receive)) continue;
        send.other = other;
        receive.other = one;
        receive.waits_for_other = true;
        send.waits_for_other = assumptions_.edges.send == CommTraits::Send::rendezvous;
        if (!same_data(send, receive)) fault("an edge carries other data than is received");
      }
    }
    for (const Transfer& transfer : transfers_)
      if (is_edge(action_of(transfer).kind) && transfer.other == kNone) fault("a transfer has no other end");
  }

  bool is_ready(std::size_t rank, const State& state) const {
    const Step& step = lists_[rank][state.reached[rank]];
    return ((step.waits | step.held) & ~state.complete) == 0;
  }
  /// True if the rank has reached its sync point of this kind or passed it.
  bool is_at(Kind kind, std::size_t rank, const State& state) const {
    const std::vector<Step>& list = lists_[rank];
    const auto found = std::ranges::find_if(list, [kind](const Step& step) { return step.action->kind == kind; });
    const auto at = static_cast<std::size_t>(found - list.begin());
    return state.reached[rank] > at || (state.reached[rank] == at && is_ready(rank, state));
  }
  bool can_run(std::size_t rank, const State& state) const {
    const Kind kind = lists_[rank][state.reached[rank]].action->kind;
    if (!is_ready(rank, state)) return false;
    if (!is_sync_point(kind)) return true;
    for (std::size_t other = 0; other < lists_.size(); ++other)
      if (!is_at(kind, other, state)) return false;
    return true;
  }
  bool has_begun(const Transfer& transfer, const State& state) const {
    return state.reached[transfer.rank] > transfer.at && (transfer.before & ~state.complete) == 0;
  }
  /// False if the transfer cannot complete or is already complete.
  bool complete(const Transfer& transfer, const State& state, std::vector<State>& out) const {
    if ((state.complete & transfer.bit) != 0 || !has_begun(transfer, state)) return false;
    if (transfer.waits_for_other && !has_begun(transfers_[transfer.other], state)) return false;
    out.push_back(state);
    out.back().complete |= transfer.bit;
    return true;
  }

  PipelineShape shape_;
  schedule::Assumptions assumptions_;
  Orders orders_;
  bool scattered_;
  SlotsByHand slots_;
  std::vector<std::vector<Step>> lists_; // by rank
  /// By rank and position: transfers that some later step touches without waiting for them.
  std::vector<std::vector<Mask>> watched_;
  std::vector<Transfer> transfers_;
  Mask all_ = 0;
  std::array<Mask, kMaxSearchedRanks> own_{}; // by rank
  std::string fault_;
};

} // namespace triax::test
