// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_space.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "triax/text.hpp"

namespace triax::plan {

namespace {

template <class Int>
std::vector<Int> divisors(Int number) {
  std::vector<Int> out;
  for (Int low = 1; low <= number / low; ++low) {
    if (number % low != 0) continue;
    out.push_back(low);
    if (low != number / low) out.push_back(number / low);
  }
  std::ranges::sort(out);
  return out;
}

/// With divisors all stages can have as many blocks. A few others, because many numbers of blocks have few divisors.
std::vector<int> chunks_of(int blocks) {
  std::vector<int> out = divisors(blocks);
  for (const int few : {2, 3, 4})
    if (few <= blocks && std::ranges::find(out, few) == out.end()) out.push_back(few);
  std::ranges::sort(out);
  return out;
}

template <class Int>
std::optional<Int> number_of(const std::string& value) {
  Int out = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, out);
  return error == std::errc() && at == end && out > 0 ? std::optional(out) : std::nullopt;
}

std::string unquoted(std::string value) {
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') return value.substr(1, value.size() - 2);
  return value;
}

template <class Value>
std::string listed(const std::vector<Value>& values) {
  std::string out;
  for (const Value& value : values) out += text("{}{}", out.empty() ? "" : ", ", value);
  return out;
}

/// Keeps one value; false: the text is not an allowed value.
using Fix = std::function<bool(PlanSpace&, const std::string&)>;

/// Other numbers do not divide the ranks or the batch, or lie across nodes: no plan has them.
template <class Int>
Fix number(std::vector<Int> PlanSpace::*values) {
  return [values](PlanSpace& space, const std::string& value) {
    const std::optional<Int> out = number_of<Int>(value);
    if (!out || std::ranges::find(space.*values, *out) == (space.*values).end()) return false;
    space.*values = {*out};
    return true;
  };
}
/// The search tries a part of the numbers that are allowed.
bool fix_chunks(PlanSpace& space, const std::string& value) {
  const std::optional<int> out = number_of<int>(value);
  if (!out || *out > space.blocks) return false;
  space.chunks = {*out};
  return true;
}
bool fix_recompute(PlanSpace& space, const std::string& value) {
  const auto found = std::ranges::find(space.recompute, value, [](Recompute of) { return name_of(of); });
  if (found == space.recompute.end()) return false;
  space.recompute = {*found};
  return true;
}
Fix flag(std::vector<bool> PlanSpace::*values, std::string on, std::string off) {
  return [values, on = std::move(on), off = std::move(off)](PlanSpace& space, const std::string& value) {
    if (value != on && value != off) return false;
    space.*values = {value == on};
    return true;
  };
}
Fix name(std::vector<std::string> PlanSpace::*values, std::string prefix) {
  return [values, prefix = std::move(prefix)](PlanSpace& space, const std::string& value) {
    const std::string whole = value.starts_with(prefix) ? value : prefix + value;
    if (std::ranges::find(space.*values, whole) == (space.*values).end()) return false;
    space.*values = {whole};
    return true;
  };
}

using Values = std::function<std::string(const PlanSpace&)>;

template <class Value>
Values one_of(std::vector<Value> PlanSpace::*values) {
  return [values](const PlanSpace& space) { return "one of " + listed(space.*values); };
}

struct Setting {
  std::string key; // of the TOML file
  Values values;   // for messages
  Fix fix;
};

const std::map<std::string, Setting>& settings() {
  static const std::map<std::string, Setting> kSettings = {
      {"pipeline", {"parallel.pipeline", one_of(&PlanSpace::pipeline), number(&PlanSpace::pipeline)}},
      {"tensor", {"parallel.tensor", one_of(&PlanSpace::tensor), number(&PlanSpace::tensor)}},
      {"data", {"parallel.data", one_of(&PlanSpace::data), number(&PlanSpace::data)}},
      {"chunks",
       {"parallel.chunks",
        [](const PlanSpace& space) { return text("at most the {} blocks of the model", space.blocks); }, fix_chunks}},
      {"micro", {"batch.micro", one_of(&PlanSpace::micro), number(&PlanSpace::micro)}},
      {"sequence",
       {"parallel.sequence", [](const PlanSpace&) { return "true or false"; },
        flag(&PlanSpace::sequence, "true", "false")}},
      {"recompute", {"memory.recompute", [](const PlanSpace&) { return "none, cheap or full"; }, fix_recompute}},
      {"split",
       {"parallel.split", [](const PlanSpace&) { return "auto or even"; }, flag(&PlanSpace::balanced, "auto", "even")}},
      {"schedule", {"schedule.plugin", one_of(&PlanSpace::schedules), name(&PlanSpace::schedules, "sched-")}},
      {"shard", {"optimizer.shard", one_of(&PlanSpace::shards), name(&PlanSpace::shards, "")}}};
  return kSettings;
}

/// Restricts the space to "tensor=8"; the keys that are fixed already are in `fixed`.
Refusals fix_setting(PlanSpace& space, std::set<std::string>& fixed, const std::string& setting,
                     const std::string& flag) {
  const std::size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals), value = unquoted(setting.substr(equals + 1));
  std::vector<std::string> keys;
  for (const auto& [short_key, of] : settings()) {
    keys.push_back(of.key);
    if (key != short_key && key != of.key) continue;
    if (!fixed.insert(of.key).second)
      return make_refusal(ErrorCode::kInvalidValue, {flag}, "{} {}: {} is fixed already", flag, setting, of.key)
          .with_hint("write {} once for each setting", flag);
    const std::string values = of.values(space);
    if (of.fix(space, value)) return {};
    return make_refusal(ErrorCode::kInvalidValue, {flag}, "{} {}: {} must be {}, got \"{}\"", flag, setting, of.key,
                        values, value)
        .with_hint("write an allowed value, or leave {} out", flag);
  }
  return make_refusal(ErrorCode::kUnknownKey, {flag}, "{} {}: \"{}\" is not a setting of a plan", flag, setting, key)
      .with_hint("settings: {}", listed(keys));
}

} // namespace

PlanSpace make_space(const SpaceRequest& request) {
  const config::RunConfig& run = request.run;
  PlanSpace out;
  out.ranks = request.ranks;
  out.batch = run.batch.global;
  out.blocks = request.model.blocks;
  out.devices_per_node = request.cluster.node.devices;
  const std::vector<int> axis = divisors(request.ranks);
  for (const int ranks : axis)
    if (ranks <= request.model.blocks) out.pipeline.push_back(ranks);
  // Groups of other sizes would lie across nodes in ways that the cost of a collective does not know.
  const int devices = request.cluster.node.devices;
  for (const int ranks : axis)
    if (request.ranks <= devices || devices % ranks == 0 || ranks % devices == 0) out.tensor.push_back(ranks);
  out.data = axis;
  out.chunks = chunks_of(request.model.blocks);
  out.micro = divisors(run.batch.global);
  out.recompute.assign(std::begin(kPlannedRecomputes), std::end(kPlannedRecomputes));
  out.sequence = {false, true};
  out.schedules = request.schedules;
  out.balanced = {false, true};
  out.shards = {"none"};
  if (request.can_shard_states) out.shards.insert(out.shards.end(), {"states", "gradients", "parameters"});
  return out;
}

namespace {

template <class Values, class Value>
bool has_value(const Values& values, Value value) {
  return std::ranges::find(values, value) != values.end();
}
template <class Values>
bool has_number(const Values& values, int number) {
  return number >= 0 && number < std::ssize(values);
}

} // namespace

bool contains_layout(const PlanSpace& space, const TrainingPlan& plan) {
  return has_value(space.pipeline, plan.pipeline) && has_value(space.tensor, plan.tensor) &&
         has_value(space.data, plan.data) && has_value(space.micro, plan.micro) &&
         has_value(space.chunks, plan.chunks) && has_number(space.schedules, plan.schedule) &&
         std::int64_t{plan.pipeline} * plan.tensor * plan.data == space.ranks && space.batch % plan.micro == 0 &&
         space.batch / plan.micro % plan.data == 0 && std::int64_t{plan.pipeline} * plan.chunks <= space.blocks;
}

bool contains_settings(const PlanSpace& space, const TrainingPlan& plan) {
  return has_value(space.recompute, plan.recompute) && has_value(space.sequence, plan.sequence) &&
         has_number(space.shards, plan.shard) && has_value(space.balanced, plan.balanced) &&
         (plan.tensor > 1 || plan.sequence == space.sequence.front()) && (plan.data > 1 || plan.shard == 0) &&
         (plan.pipeline > 1 || plan.balanced == space.balanced.front());
}

bool contains(const PlanSpace& space, const TrainingPlan& plan) {
  return contains_layout(space, plan) && contains_settings(space, plan);
}

std::string sizes_text(const TrainingPlan& plan) {
  return text("p = {}, t = {}, d = {}, v = {}, b = {}", plan.pipeline, plan.tensor, plan.data, plan.chunks, plan.micro);
}

Refusals fix_settings(PlanSpace& space, const std::vector<std::string>& settings, const std::string& flag) {
  Refusals out;
  std::set<std::string> fixed;
  for (const std::string& setting : settings) out.add(fix_setting(space, fixed, setting, flag));
  return out;
}

} // namespace triax::plan
