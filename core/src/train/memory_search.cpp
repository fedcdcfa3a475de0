// SPDX-License-Identifier: Apache-2.0
#include "train/memory_search.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "plugin/probe_answer.hpp"
#include "train/preflight.hpp"
#include "train/preflight_process.hpp"

namespace triax::train {

namespace {

using Json = nlohmann::json;
template <class Value>
using OfStages = config::PerStage<Value>;

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> out;
  for (std::int64_t low = 1; low <= number / low; ++low) {
    if (number % low != 0) continue;
    out.push_back(low);
    if (low != number / low) out.push_back(number / low);
  }
  std::ranges::sort(out);
  return out;
}

class Search {
 public:
  /// `asks_cheap`: whether "cheap" is planned for a run that does not have it.
  Search(config::RunConfig run, std::uint64_t limit, Log& log, bool asks_cheap)
      : run_(std::move(run)),
        limit_(limit),
        log_(log),
        asks_cheap_(asks_cheap || run_.memory.recompute.any("cheap")),
        placement_(choose_placement(run_)) {}

  MemorySearch take() {
    MemorySearch out;
    const MemorySettings written = {run_.parallel.sequence, run_.optimizer_core.shard, run_.memory.recompute,
                                    run_.batch.micro, run_.memory.recompute_layers};
    const Planned as_written = plan(written, PlannedRanks::all);
    if (!as_written.plan) {
      out.refusals = as_written.refusals;
      return out;
    }
    out.written = *as_written.plan;
    const std::vector<std::string> asked = shards(written); // does not depend on the recomputation
    for (const auto& [recompute, layers] : recomputations(written)) {
      for (const std::string& shard : asked) {
        for (const bool sequence : {false, true}) {
          // A setting that is on stays on: sequence parallelism costs no time.
          if (sequence ? run_.parallel.tensor == 1 : written.sequence) continue;
          const auto found = largest({sequence, shard, recompute, 1, layers});
          if (found && !has_equal(out.plans, *found)) out.plans.push_back(*found);
        }
      }
    }
    out.best = best(out);
    out.left_out = left_out_;
    return out;
  }

 private:
  /// Whether other recompute_layers need as much.
  static bool has_equal(const std::vector<MemoryPlan>& plans, const MemoryPlan& plan) {
    return std::ranges::any_of(plans, [&plan](const MemoryPlan& other) {
      MemorySettings settings = other.settings;
      settings.layers = plan.settings.layers;
      return settings == plan.settings && other.bytes == plan.bytes;
    });
  }

  struct Planned {
    std::optional<MemoryPlan> plan; // empty: refused
    Refusals refusals;
    bool shares_accumulators = false, saves_weights = false;
  };

  Planned plan(const MemorySettings& settings, PlannedRanks planned) {
    config::RunConfig run = run_;
    run.parallel.sequence = settings.sequence;
    if (settings.sequence) run.parallel.scatter_gather = false; // its parts are what that would send
    run.optimizer_core.shard = settings.shard;
    run.memory.recompute = settings.recompute;
    run.memory.recompute_layers = settings.layers;
    run.batch.micro = settings.micro;
    const Preflight checked = preflight(run, placement_, log_, {}, planned);
    if (!checked.refusals.empty() || checked.plans.empty()) return {{}, checked.refusals};
    const RankPlan& most = *std::ranges::max_element(checked.plans, {}, &RankPlan::bytes);
    MemoryPlan out{settings, most.bytes(), most.ranks.front(), {}};
    if (checked.balance.step) out.bubble = checked.balance.step->bubble;
    return {out, {}, checked.shares_accumulators, checked.saves_weights};
  }

  /// State that is divided stays divided. Without data ranks nothing is; "gradients" and "parameters" are left out
  /// where they save nothing.
  std::vector<std::string> shards(MemorySettings written) {
    if (run_.parallel.data == 1) return {written.shard};
    constexpr std::array kShards = {"none", "states", "gradients", "parameters"};
    std::vector<std::string> out;
    const auto first = std::ranges::find(kShards, written.shard);
    for (const auto* shard = first; shard != kShards.end(); ++shard) {
      written.shard = *shard;
      const bool is_asked = shard != first && shard - kShards.begin() >= 2;
      const Planned planned = is_asked ? plan(written, PlannedRanks::of_most_memory) : Planned();
      const bool saves = written.shard == "gradients" ? planned.shares_accumulators : planned.saves_weights;
      if (!is_asked || saves) out.push_back(written.shard);
    }
    return out;
  }

  /// memory.recompute and recompute_layers: of all blocks, and of the stages of which it is written. The number of
  /// blocks that needs least memory is left out where it is that of the run. A model or kernel set that refuses "cheap"
  /// has no row of it.
  std::vector<std::pair<OfStages<std::string>, OfStages<std::int64_t>>> recomputations(MemorySettings written) {
    std::vector<std::pair<OfStages<std::string>, OfStages<std::int64_t>>> out;
    out.emplace_back("none", written.layers);
    const bool is_mixed = !written.recompute.all(written.recompute.of(0)), has_full = written.recompute.any("full");
    if (is_mixed && !has_full) out.emplace_back(written.recompute, written.layers);
    if (asks_cheap_) out.emplace_back("cheap", written.layers);
    if (is_mixed && has_full) out.emplace_back(written.recompute, written.layers);
    out.emplace_back("full", written.layers);
    written.recompute = {"full"};
    const Planned as_written = plan(written, PlannedRanks::of_most_memory);
    written.layers = {0};
    const Planned least = plan(written, PlannedRanks::of_most_memory);
    if (as_written.plan && least.plan && least.plan->bytes < as_written.plan->bytes) out.emplace_back("full", 0);
    return out;
  }

  /// Bisects the microbatches, as larger ones need more. One that is refused (some schedules restrict their number)
  /// is left out.
  std::optional<MemoryPlan> largest(MemorySettings settings) {
    std::vector<std::int64_t> candidates = divisors(run_.batch.global / run_.parallel.data);
    std::optional<MemoryPlan> fits, least;
    std::size_t first = 0, last = candidates.size(); // those before `first` fit, those from `last` on do not
    while (first < last) {
      const std::size_t at = first + (last - first) / 2;
      settings.micro = candidates[at];
      const Planned planned = plan(settings, PlannedRanks::of_most_memory);
      if (!planned.plan) {
        note_failures(planned.refusals);
        candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(at));
        --last;
      } else if (planned.plan->bytes <= limit_) {
        fits = planned.plan;
        first = at + 1;
      } else {
        least = planned.plan;
        last = at;
      }
    }
    return fits ? fits : least;
  }

  void note_failures(const Refusals& refusals) {
    for (const Refusal& refusal : refusals)
      if (refusal.code == ErrorCode::kPluginFailed && std::ranges::find(left_out_, refusal) == left_out_.end())
        left_out_.add(refusal);
  }

  std::optional<MemoryPlan> best(const MemorySearch& found) {
    if (found.written.bytes <= limit_) return found.written;
    const std::int64_t wanted = found.written.settings.micro;
    std::vector<MemoryPlan> fitting;
    for (const MemoryPlan& plan : found.plans)
      if (plan.bytes <= limit_) fitting.push_back(plan);
    // The first of equals stays the first.
    std::ranges::stable_sort(fitting, std::ranges::greater{},
                             [wanted](const MemoryPlan& plan) { return std::min(plan.settings.micro, wanted); });
    for (const MemoryPlan& plan : fitting) {
      MemorySettings settings = plan.settings;
      settings.micro = std::min(settings.micro, wanted);
      const Planned whole = this->plan(settings, PlannedRanks::all);
      if (whole.plan && whole.plan->bytes <= limit_) return whole.plan;
    }
    return {};
  }

  const config::RunConfig run_;
  const std::uint64_t limit_;
  Log& log_;
  const bool asks_cheap_;
  const Placement placement_;
  Refusals left_out_;
};

template <class Value>
Json of_stages_json(const OfStages<Value>& of) {
  return of.is_list() ? Json(of.values()) : Json(of.values().front());
}
template <class Value>
OfStages<Value> read_of_stages(const Json& json) {
  if (json.is_array()) return OfStages<Value>::listed(json.get<std::vector<Value>>());
  return json.get<Value>();
}

Json found_json(const MemoryPlan& plan) {
  const MemorySettings& settings = plan.settings;
  return {settings.sequence,
          settings.shard,
          of_stages_json(settings.recompute),
          settings.micro,
          of_stages_json(settings.layers),
          plan.bytes,
          plan.rank,
          plan.bubble ? Json(*plan.bubble) : Json()};
}
MemoryPlan read_found(const Json& json) {
  MemoryPlan out{{json.at(0), json.at(1), read_of_stages<std::string>(json.at(2)), json.at(3),
                  read_of_stages<std::int64_t>(json.at(4))},
                 json.at(5),
                 json.at(6),
                 {}};
  if (!json.at(7).is_null()) out.bubble = json.at(7).get<double>();
  return out;
}

ChildAnswer search_in_child(const config::RunConfig& run, std::uint64_t limit, Log& log, bool asks_cheap) {
  return ask_in_child(run, [&] {
    const MemorySearch search = Search(run, limit, log, asks_cheap).take();
    Json plans = Json::array();
    for (const MemoryPlan& plan : search.plans) plans.push_back(found_json(plan));
    return plugin::pack({plugin::refusals_json(search.refusals), found_json(search.written), plans,
                         search.best ? found_json(*search.best) : Json(), plugin::refusals_json(search.left_out)});
  });
}

} // namespace

MemorySearch search_memory(const config::RunConfig& run, std::uint64_t limit, Log& log) {
  MemorySearch out;
  ChildAnswer answer = search_in_child(run, limit, log, true);
  if (!answer.refusals.empty() && !run.memory.recompute.any("cheap")) { // it may have been recompute()
    const Refusals failure = std::exchange(answer, search_in_child(run, limit, log, false)).refusals;
    if (answer.refusals.empty()) out.left_out = failure;
  }
  out.refusals = answer.refusals;
  if (!out.refusals.empty()) return out;
  const Json json = plugin::unpack(answer.packed);
  out.refusals = plugin::read_refusals(json.at(0));
  out.written = read_found(json.at(1));
  out.scatter_gather = run.parallel.scatter_gather;
  for (const Json& plan : json.at(2)) out.plans.push_back(read_found(plan));
  if (!json.at(3).is_null()) out.best = read_found(json.at(3));
  out.left_out.add(plugin::read_refusals(json.at(4)));
  return out;
}

} // namespace triax::train
