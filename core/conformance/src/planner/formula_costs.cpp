// SPDX-License-Identifier: Apache-2.0
#include "formula_costs.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::conformance {

namespace {

/// Factors of the time of a pass and of the bytes of activations.
struct RecomputeFactors {
  double time = 1, bytes = 1;
};
RecomputeFactors factors_of(Recompute recompute) {
  if (recompute == Recompute::cheap) return {33.0 / 32, 0.625};
  return recompute == Recompute::full ? RecomputeFactors{4.0 / 3, 0.125} : RecomputeFactors{};
}

/// Time and size that grow with each setting as those of a real run do. The numbers have no other meaning.
PlanTable::Row row_of(const PlanSpace& space, const TrainingPlan& plan) {
  const double p = plan.pipeline, t = plan.tensor, d = plan.data, v = plan.chunks;
  const auto b = static_cast<double>(plan.micro), m = static_cast<double>(plan.microbatches(space.batch));
  const RecomputeFactors recompute = factors_of(plan.recompute);
  const double blocks = space.blocks, pass = blocks / (p * t) * (b + 0.5) * recompute.time;
  PlanTable::Row out{plan, {}, 0};
  out.time.compute = m * pass;
  out.time.bubble = (p - 1) / v * pass * (1 + 0.25 * plan.schedule);
  const double link = plan.tensor > space.devices_per_node ? 0.8 : 0.1;
  out.time.tensor = m * b * blocks / p * (1 - 1 / t) * link * (plan.sequence ? 0.9 : 1);
  out.time.pipeline = plan.pipeline > 1 ? 2 * m * v : 0;
  out.time.data = (1 - 1 / d) * blocks / (p * t) * (1 + 0.1 * plan.shard);
  out.time.optimizer = blocks / (p * t * (plan.shard > 0 ? d : 1));
  out.time.fixed = 0.25;
  if (plan.balanced) out.time.bubble *= 0.75;
  const double in_flight = plan.schedule == 0 ? m : std::min(m, p * (1 + 0.125 * v));
  const double weights = 4096 * blocks / (p * t) * (plan.shard > 0 ? 0.5 + 0.5 / d : 1);
  const double activations =
      256 * b * in_flight * blocks / (p * (plan.sequence ? t : 1)) * recompute.bytes * (plan.balanced ? 1.125 : 1);
  out.bytes = static_cast<std::uint64_t>(weights + activations);
  return out;
}

PlanSpace base_space() {
  PlanSpace out;
  out.ranks = 16;
  out.batch = 32;
  out.blocks = 16;
  out.devices_per_node = 4;
  out.pipeline = out.tensor = out.data = {1, 2, 4, 8, 16};
  out.chunks = {1, 2};
  out.micro = {2, 4};
  out.recompute.assign(std::begin(kPlannedRecomputes), std::end(kPlannedRecomputes));
  out.sequence = {false, true};
  out.schedules = {"sched-gpipe", "sched-1f1b"};
  out.shards = {"none", "states"};
  return out;
}

} // namespace

PlanTable::PlanTable(std::string name, PlanSpace space) : name_(std::move(name)), space_(std::move(space)) {
  for_each_plan(space_, [this](const TrainingPlan& plan) {
    rows_.push_back(row_of(space_, plan));
    return true;
  });
  std::ranges::stable_sort(rows_, {}, [](const Row& row) { return row.time.step(); });
  by_plan_.resize(rows_.size());
  std::iota(by_plan_.begin(), by_plan_.end(), std::size_t{0});
  std::ranges::sort(by_plan_, {}, [this](std::size_t row) { return rows_[row].plan; });
}

std::size_t PlanTable::find(const TrainingPlan& plan) const {
  const auto found = std::ranges::lower_bound(by_plan_, plan, {}, [this](std::size_t row) { return rows_[row].plan; });
  return found != by_plan_.end() && rows_[*found].plan == plan ? *found : rows_.size();
}

std::uint64_t PlanTable::limit_of(double fraction) const {
  std::vector<std::uint64_t> bytes;
  for (const Row& row : rows_) bytes.push_back(row.bytes);
  std::ranges::sort(bytes);
  return bytes.at(static_cast<std::size_t>(fraction * static_cast<double>(bytes.size() - 1)));
}

PlanTable large_space() {
  PlanSpace space = base_space();
  space.chunks = {1, 2, 4};
  space.micro = {1, 2, 4, 8, 16, 32};
  space.schedules = {"sched-gpipe", "sched-1f1b", "sched-interleaved"};
  space.shards = {"none", "states", "gradients"};
  space.balanced = {false, true};
  return {"16 ranks, all settings", std::move(space)};
}

std::vector<PlanTable> some_spaces() {
  std::vector<PlanTable> out;
  out.emplace_back("16 ranks", base_space());
  PlanSpace twelve = base_space();
  twelve.ranks = 12;
  twelve.batch = 36;
  twelve.blocks = 6; // fewer than the pipeline ranks of some plans
  twelve.pipeline = twelve.tensor = twelve.data = {1, 2, 3, 4, 6, 12};
  twelve.chunks = {1, 2, 3};
  twelve.micro = {1, 3, 5};
  twelve.balanced = {false, true};
  out.emplace_back("12 ranks", std::move(twelve));
  PlanSpace fixed = base_space();
  fixed.tensor = {16};
  fixed.schedules = {"sched-zb-h1"};
  fixed.recompute = {Recompute::full};
  fixed.shards = {"states"};
  fixed.balanced = {true};
  out.emplace_back("16 tensor ranks", std::move(fixed));
  return out;
}

std::vector<PlanTable> spaces_of_one_plan() {
  std::vector<PlanTable> out;
  PlanSpace one = base_space();
  one.ranks = 8;
  one.pipeline = one.tensor = one.data = {2};
  one.chunks = {2};
  one.micro = {4};
  one.recompute = {Recompute::full};
  one.sequence = {true};
  one.schedules = {"sched-interleaved"};
  one.shards = {"states"};
  out.emplace_back("one plan of 8 ranks", one);
  one.ranks = 8;
  one.pipeline = one.data = {1};
  one.tensor = {8}; // more than a node has
  one.recompute = {Recompute::cheap};
  one.sequence = {false};
  out.emplace_back("one plan of 8 tensor ranks", one);
  one.ranks = 1;
  one.tensor = {1};
  out.emplace_back("one plan of one rank", std::move(one));
  return out;
}

PlanTable empty_space() {
  PlanSpace space = base_space();
  space.tensor = {3};
  return {"no plan", std::move(space)};
}

FormulaCosts::FormulaCosts(const PlanTable& table, Options options) : table_(table), options_(std::move(options)) {
  ask_for_stop();
}

bool FormulaCosts::is_refused(std::size_t row) const {
  return options_.refused != Refused::never && (options_.refuses_all || row % 2 == 0);
}

void FormulaCosts::ask_for_stop() {
  stopped_ = stopped_ || (options_.stop && options_.stop(calls_));
}

std::size_t FormulaCosts::count(std::int64_t PlanCalls::*function, const TrainingPlan& plan) {
  ++(calls_.*function);
  if (stopped_) ++(late_.*function);
  const std::size_t row = table_.find(plan);
  if (row == table_.rows().size()) {
    outside_ = plan;
    throw Error(text("a plan is not in the space: {}", plan_text(plan)), "the evaluator of the suite");
  }
  return row;
}

std::optional<PlanBounds> FormulaCosts::bounds(const TrainingPlan& plan) {
  const std::size_t row = count(&PlanCalls::bounds, plan);
  ask_for_stop();
  if (options_.refused == Refused::in_bounds && is_refused(row)) return std::nullopt;
  const PlanTable::Row& of = table_.rows()[row];
  return PlanBounds{of.time.compute + of.time.optimizer + of.time.fixed, of.bytes - of.bytes / 8};
}

std::optional<PlanTime> FormulaCosts::time(const TrainingPlan& plan) {
  const std::size_t row = count(&PlanCalls::time, plan);
  ask_for_stop();
  if (options_.refused != Refused::in_evaluate && is_refused(row)) return std::nullopt;
  return table_.rows()[row].time;
}

std::optional<PlanEvaluation> FormulaCosts::evaluate(const TrainingPlan& plan) {
  const std::size_t row = count(&PlanCalls::evaluate, plan);
  const bool is_found = fits(row) && !is_refused(row);
  if (is_found) ++calls_.found;
  ask_for_stop();
  if (is_refused(row)) return std::nullopt;
  const PlanTable::Row& of = table_.rows()[row];
  return PlanEvaluation{is_found, of.bytes, is_found ? of.time : PlanTime{}};
}

std::string plan_text(const TrainingPlan& plan) {
  return text("p = {}, t = {}, d = {}, v = {}, b = {}, schedule {}, shard {}, recompute {}{}{}", plan.pipeline,
              plan.tensor, plan.data, plan.chunks, plan.micro, plan.schedule, plan.shard, name_of(plan.recompute),
              plan.sequence ? ", sequence" : "", plan.balanced ? ", balanced" : "");
}

} // namespace triax::conformance
