// SPDX-License-Identifier: Apache-2.0
// Searches in spaces of a formula, and what their answers must be.
#include <algorithm>
#include <set>

#include "planner_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr int kCounts[] = {1, 50};

struct Setting {
  std::string text;
  FormulaCosts::Options options;
};

std::vector<Setting> settings_of(const PlanTable& table) {
  const std::uint64_t half = table.limit_of(0.5);
  return {{"all plans fit", {}},
          {"half of the plans fit", {.limit = half}},
          {"few plans fit", {.limit = table.limit_of(0.02)}},
          {"half of the plans fit, bounds() refuses every second", {.limit = half, .refused = Refused::in_bounds}},
          {"half of the plans fit, time() refuses every second", {.limit = half, .refused = Refused::in_time}},
          {"half of the plans fit, evaluate() refuses every second", {.limit = half, .refused = Refused::in_evaluate}},
          {"all plans are refused", {.refused = Refused::in_evaluate, .refuses_all = true}}};
}

void check_places(const Search& search, Report& report) {
  report.expect(search.answer.size() <= static_cast<std::size_t>(search.count), "{}: search() returns {} plans",
                search.text, search.answer.size());
  std::set<TrainingPlan> seen;
  for (const TrainingPlan& plan : search.answer) {
    report.expect(search.costs.table().find(plan) < search.costs.table().rows().size(),
                  "{}: search() returns a plan that is not in the space: {}", search.text, plan_text(plan));
    report.expect(seen.insert(plan).second, "{}: search() returns a plan twice: {}", search.text, plan_text(plan));
  }
}

/// The rows of the returned plans that are in the space.
std::vector<std::size_t> returned_rows(const Search& search) {
  std::vector<std::size_t> out;
  for (const TrainingPlan& plan : search.answer)
    if (const std::size_t row = search.costs.table().find(plan); row < search.costs.table().rows().size())
      out.push_back(row);
  return out;
}

} // namespace

bool run_search(Planner& planner, Search& search, Report& report) {
  const std::string error = error_of([&] { search.answer = planner.search(search.costs, search.count); });
  if (!search.costs.outside()) report.expect(error.empty(), "{}: search() throws: {}", search.text, error);
  return error.empty();
}

void for_searches(const PlannerSubject& subject, Report& report, const std::function<void(const Search&)>& body) {
  for_all_searches(subject, report, [&body](const Search& search, bool ended) {
    if (ended) body(search);
  });
}

void for_all_searches(const PlannerSubject& subject, Report& report,
                      const std::function<void(const Search&, bool ended)>& body) {
  const Object<Planner> planner = subject.planner();
  for (const PlanTable& table : some_spaces())
    for (const Setting& setting : settings_of(table))
      for (const int count : kCounts) {
        FormulaCosts costs(table, setting.options);
        Search search{costs, count, text("{}, {}, count {}", table.name(), setting.text, count)};
        const bool ended = run_search(*planner, search, report);
        body(search, ended);
      }
}

void check_answer(char number, const Search& search, Report& report) {
  if (number == '1') return check_places(search, report);
  const auto& rows = search.costs.table().rows();
  if (number == '2') {
    if (const std::optional<TrainingPlan>& outside = search.costs.outside())
      report.fail(text("{}: search() asks for a plan that is not in the space: {}", search.text, plan_text(*outside)));
    return;
  }
  double before = 0;
  for (const std::size_t row : returned_rows(search)) {
    const std::string at = search.text + ": search() returns " + plan_text(rows[row].plan);
    if (number == '3')
      report.expect(search.costs.fits(row), "{}, which does not fit: {} bytes of {}", at, rows[row].bytes,
                    search.costs.memory_limit());
    if (number == '4') report.expect(!search.costs.is_refused(row), "{}, which is refused", at);
    const double step = rows[row].time.step();
    if (number == '5') report.expect(step >= before, "{} of {} s after a plan of {} s", at, step, before);
    before = step;
  }
}

std::string answer_difference(const std::vector<TrainingPlan>& a, const std::vector<TrainingPlan>& b) {
  if (a.size() != b.size()) return text("{} and {} plans", a.size(), b.size());
  const auto [one, other] = std::ranges::mismatch(a, b);
  if (one == a.end()) return {};
  return text("plan {}: {} and {}", one - a.begin() + 1, plan_text(*one), plan_text(*other));
}

} // namespace triax::conformance
