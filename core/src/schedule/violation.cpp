// SPDX-License-Identifier: Apache-2.0
// Messages of verification violations.
#include "schedule/violation.hpp"

#include "triax/scheduler.hpp"
#include "triax/text.hpp"

namespace triax::schedule {

namespace {

/// The result of a pass.
const char* made_by(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::backward:
      return "backward";
    case Kind::backward_input:
      return "input gradient";
    case Kind::recompute:
      return "recomputation";
    default:
      return "weight gradient";
  }
}

std::string of_stage(const ActionRef& pass) {
  return text("the {} of stage {}, microbatch {}", made_by(pass.kind), pass.stage, pass.microbatch);
}

const char* order_text(CommTraits::Order order) {
  switch (order) {
    case CommTraits::Order::serial:
      return "one queue per rank";
    case CommTraits::Order::channel:
      return "one queue per edge";
    case CommTraits::Order::tagged:
      break;
  }
  return "transfers in any order";
}

/// As users count: from 1, like lines and cells of a file.
std::uint64_t number_of(const ActionRef& action) {
  return std::uint64_t{*action.position} + 1;
}

class Words {
  using Rule = Violation::Rule;

 public:
  Words(const Violation& violation, const Locator& locator) : of_(violation), locator_(locator) {}

  std::string all() const {
    switch (of_.rule) {
      case Rule::rows_per_rank:
      case Rule::one_pipeline:
      case Rule::all_stages:
      case Rule::stage_on_a_rank:
      case Rule::rank_with_a_stage:
      case Rule::programs_by_rank:
      case Rule::programs_per_rank:
        return led({}, of_whole());
      case Rule::one_stage_map:
      case Rule::one_boundary:
      case Rule::one_sharding:
      case Rule::present:
      case Rule::known_kind: // has no action text
        return led({}, of_list());
      case Rule::slot_left_free:
        return led(text("stage {}", of_.at.stage),
                   text("pool {}, slot {} still holds {} {} at the end", name_of(of_.pool), of_.slot, held(), of_.has));
      default:
        return led(action_text(of_.at), of_.is_of_slots() ? of_slots() : of_action());
    }
  }

 private:
  std::string of_whole() const {
    switch (of_.rule) {
      case Rule::rows_per_rank:
        return text("the schedule has {} rows for parallel.pipeline = {}", of_.has, of_.wanted);
      case Rule::one_pipeline:
        return text("the schedule has {} replicas: this version runs one", of_.has);
      case Rule::all_stages:
        return text("the schedule has {} stage{}, but parallel.pipeline x parallel.chunks = {}", of_.has,
                    of_.has == 1 ? "" : "s", of_.wanted);
      case Rule::stage_on_a_rank:
        return text("the schedule assigns stage {} to rank {} of {}", of_.at.stage, of_.has, of_.wanted);
      case Rule::rank_with_a_stage:
        return "the schedule assigns it no stage";
      case Rule::programs_by_rank:
        return text("program {} is that of rank {}", of_.has, of_.wanted);
      default:
        return text("there are programs of {} ranks, but p = {}", of_.has, of_.wanted);
    }
  }

  std::string of_list() const {
    if (of_.rule == Rule::known_kind) return text("an action of kind {}, which is not F, B, I or W", of_.has);
    if (of_.rule == Rule::one_stage_map) return "its program has other stages, or another stage map";
    if (of_.rule == Rule::one_boundary) return "its program and that of rank 0 do not scatter the same boundaries";
    if (of_.rule == Rule::one_sharding) return "its program and that of rank 0 do not divide the same among the ranks";
    const std::string missing = action_text(of_.at) + " is missing";
    return runs_layers(of_.at.kind) ? text("{}, {}", missing, of_stage(of_.at)) : missing;
  }

  std::string of_action() const {
    switch (of_.rule) {
      case Rule::known_stage:
        return text("stage {} does not exist; the last is {}", of_.at.stage, of_.wanted);
      case Rule::known_microbatch:
        return text("microbatch {} does not exist; the last is {}", of_.at.microbatch, of_.wanted);
      case Rule::names_microbatch:
        return "it has no microbatch";
      case Rule::whole_sequence:
        return "this version runs whole sequences through one pipeline";
      case Rule::on_its_rank:
        return text("stage {} is on rank {}", of_.at.stage, of_.has);
      case Rule::forward_alone:
        return "an evaluation runs only forwards";
      case Rule::once:
        return text("{} is already at {}", runs_layers(of_.at.kind) ? of_stage(other()) : "it", locator_.here(other()));
      case Rule::before:
        return needs();
      case Rule::ascending:
        return text(
            "the {} of microbatch {} {}, at {}; gradients of a stage are added in ascending order of "
            "microbatches, so that every schedule gives the same bits",
            made_by(other().kind), other().microbatch,
            *other().position > *of_.at.position ? "comes later" : "came before", locator_.here(other()));
      case Rule::within_cap:
        return text("more than {} microbatch chunk{} in flight on its rank", of_.wanted,
                    of_.wanted == 1 ? " is" : "s are");
      case Rule::next_pass:
        return text("the next pass of the rank must be the backward of stage {}, microbatch {}, but {}", of_.at.stage,
                    of_.at.microbatch,
                    of_.others.empty() ? "there is none"
                                       : text("it is {}, at {}", action_text(other()), locator_.here(other())));
      case Rule::reached:
        return text("it waits for {} at {}, which is never reached", action_text(other()), locator_.there(other()));
      case Rule::no_cycle:
        return cycle_text();
      default:
        return of_transfer();
    }
  }

  std::string needs() const {
    const bool all = other().stage < 0 && rule(other().kind).scope == Scope::stage; // all stages of the rank
    const std::string what = all ? rule(other().kind).name : action_text(other());
    if (!other().position) return text("it needs {}, which is not in the program", what);
    return text("it needs {}, which comes later, at {}", what, locator_.here(other()));
  }

  std::string of_transfer() const {
    switch (of_.rule) {
      case Rule::to_another_rank:
        if (of_.has > 0) return text("the stage {} it is on the same rank", of_.wanted > 0 ? "after" : "before");
        return text("stage {} is the {} stage, so it has no {}", of_.at.stage, of_.wanted > 0 ? "last" : "first",
                    sends(of_.at.kind) ? "receiver" : "sender");
      case Rule::to_the_right_rank:
        return text("it names rank {}, but the stage is on rank {}", of_.has, of_.wanted);
      case Rule::post_waits_for_none:
        return "it is a posted transfer, but lists an action to wait for; posted transfers must not wait";
      case Rule::waits_for_earlier:
        return text("it waits for {}, which comes later", locator_.here(other()));
      case Rule::waits_for_transfer:
        return text("it waits for {}, which is not a transfer", action_text(other()));
      case Rule::joined:
        return text("it does not wait for {}, which was posted before", action_text(other()));
      case Rule::one_order_per_edge:
        return text(
            "it is send {} from rank {} to rank {}, but receive {} there is {}; both ends must use the same order",
            of_.has, of_.at.rank, other().rank, of_.has, named(other()));
      case Rule::received:
        return text("rank {} does not receive it", of_.has);
      default:
        return text("rank {} does not send it", of_.has);
    }
  }

  std::string cycle_text() const {
    std::string chain = named(of_.at);
    for (const ActionRef& waited_for : of_.others) chain += " -> " + named(waited_for);
    if (of_.has > 0) chain += text(" -> ({} more)", of_.has);
    const Guarantee& edges = of_.assumptions.edges;
    const bool with_layers = edges.order == CommTraits::Order::serial && of_.assumptions.layers.order == edges.order;
    return text("deadlock (a -> b: a waits for b): {} -> {}; assumed: {}{}, {} sends, {} posts", chain,
                action_text(of_.at), order_text(edges.order), with_layers ? " shared with the layers" : "",
                edges.send == CommTraits::Send::rendezvous ? "rendezvous" : "buffered",
                edges.post == CommTraits::Post::blocking ? "blocking" : "nonblocking");
  }

  std::string of_slots() const {
    const std::string slot = text("slot {} of pool {}", of_.slot, name_of(of_.pool));
    switch (of_.rule) {
      case Rule::slot_named:
        return text("it has no slot of pool {} to fill", name_of(of_.pool));
      case Rule::slot_exists:
        return text("{} does not exist", slot);
      case Rule::slot_free:
        return text("{} still holds {} {}", slot, held(), of_.has);
      case Rule::slot_filled:
        if (of_.slot < 0) return text("it has no slot of pool {} to read", name_of(of_.pool));
        return text("it reads {}, which does not hold its {}", slot, held());
      default:
        return text("it does not wait for {}, which may still use {}", action_text(other()), slot);
    }
  }

  bool is_of_stages() const { return of_.pool == Pool::accumulator || of_.pool == Pool::weights; }
  /// The kind of owner of the pool's slots.
  const char* held() const { return is_of_stages() ? "stage" : "microbatch"; }

  std::string led(const std::string& name, const std::string& words) const {
    const std::string lead = locator_.lead(of_.at, name);
    return lead.empty() ? words : text("{}: {}", lead, words);
  }
  const ActionRef& other() const { return of_.others.at(0); }
  std::string named(const ActionRef& action) const {
    return text("{} ({})", action_text(action), locator_.location(action));
  }

  const Violation& of_;
  const Locator& locator_;
};

} // namespace

std::string action_text(const ActionRef& action) {
  std::string out = action_text(action.kind, action.stage, action.microbatch);
  if (action.slice != 0) out += text(".{}", action.slice);
  return action.replica != 0 ? out + "'" : out;
}

std::string Locator::lead(const ActionRef& action, const std::string& name) const {
  if (action.rank < 0) return {};
  const std::string where = action.position ? location(action) : text("rank {}", action.rank);
  return name.empty() ? where : text("{}, {}", where, name);
}
std::string Locator::location(const ActionRef& action) const {
  return text("rank {}, action {}", action.rank, number_of(action));
}
std::string Locator::here(const ActionRef& action) const {
  return text("action {}", number_of(action));
}
std::string Locator::there(const ActionRef& action) const {
  return text("action {} of rank {}", number_of(action), action.rank);
}

std::string Violation::reason(const Locator& locator) const {
  return Words(*this, locator).all();
}

std::string Violation::remedy() const {
  const bool is_one = rule == Rule::before && others.at(0).stage >= 0;
  if (!is_one) return {};
  return text("{} {} before {}", others.at(0).position ? "move" : "add", action_text(others.at(0)), action_text(at));
}

} // namespace triax::schedule
