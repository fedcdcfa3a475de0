// SPDX-License-Identifier: Apache-2.0
// The course of a search: the number of its calls, its end after a stop, and what remains of a planner.
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

#include "planner_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr std::int64_t kMaxLateBounds = 1024, kMaxLateOthers = 16;

void calls_are_bounded(const PlannerSubject& subject, Report& report) {
  for_searches(subject, report, [&](const Search& search) {
    const PlanCalls& calls = search.costs.calls();
    const auto plans = static_cast<std::int64_t>(search.costs.table().rows().size());
    const std::pair<const char*, std::int64_t> kFunctions[] = {
        {"bounds", calls.bounds}, {"time", calls.time}, {"evaluate", calls.evaluate}};
    for (const auto& [function, number] : kFunctions)
      report.expect(number <= plans, "{}: search() calls {}() {} times, but there are {} plans", search.text, function,
                    number, plans);
  });
}

struct Stop {
  std::string text;
  std::function<bool(const PlanCalls&)> is_due;
};

/// Moments of a search that makes these calls.
std::vector<Stop> stops_of(const PlanCalls& all) {
  std::vector<Stop> out = {{"before the first call", [](const PlanCalls&) { return true; }},
                           {"at the first plan that fits", [](const PlanCalls& now) { return now.found > 0; }}};
  for (const int part : {1, 2, 3}) {
    const std::int64_t bounds = all.bounds * part / 4, others = (all.time + all.evaluate) * part / 4;
    if (bounds > 0)
      out.push_back({text("after {} calls of bounds()", bounds),
                     [bounds](const PlanCalls& now) { return now.bounds >= bounds; }});
    if (others > 0)
      out.push_back({text("after {} calls of time() and evaluate()", others),
                     [others](const PlanCalls& now) { return now.time + now.evaluate >= others; }});
  }
  return out;
}

void check_late_calls(const Search& search, Report& report) {
  const PlanCalls& late = search.costs.late_calls();
  report.expect(late.bounds <= kMaxLateBounds, "{}: search() calls bounds() {} times more, must be at most {}",
                search.text, late.bounds, kMaxLateBounds);
  const std::int64_t others = late.time + late.evaluate;
  report.expect(others <= kMaxLateOthers,
                "{}: search() calls time() and evaluate() {} times more, must be at most {} together", search.text,
                others, kMaxLateOthers);
}

void ends_after_a_stop(const PlannerSubject& subject, Report& report) {
  const PlanTable table = large_space();
  const FormulaCosts::Options half{.limit = table.limit_of(0.5)};
  const Object<Planner> planner = subject.planner();
  for (const int count : {1, 1000}) {
    FormulaCosts complete(table, half);
    Search whole{complete, count, table.name()};
    if (!run_search(*planner, whole, report)) return;
    for (const Stop& stop : stops_of(complete.calls())) {
      FormulaCosts::Options options = half;
      options.stop = stop.is_due;
      FormulaCosts costs(table, options);
      Search search{costs, count, text("{}, count {}, stopped {}", table.name(), count, stop.text)};
      if (!run_search(*planner, search, report)) {
        check_answer('2', search, report);
        continue;
      }
      check_late_calls(search, report);
      for (const char number : {'1', '2', '3', '4', '5'}) check_answer(number, search, report);
      report.expect(costs.calls().found == 0 || !search.answer.empty(),
                    "{}: search() returns no plan, but evaluate() has found {} that fit", search.text,
                    costs.calls().found);
    }
  }
}

/// Entries of a folder of this process in /proc.
std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

/// A thread that has ended may be listed a moment longer.
std::ptrdiff_t threads_at_most(std::ptrdiff_t expected) {
  constexpr int kTries = 200;
  std::ptrdiff_t out = entries("/proc/self/task");
  for (int i = 0; i < kTries && out > expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    out = entries("/proc/self/task");
  }
  return out;
}

void leaves_nothing_behind(const PlannerSubject& subject, Report& report) {
  const PlanTable table = some_spaces().front();
  const auto search_once = [&] {
    FormulaCosts costs(table, {});
    Search search{costs, 3, table.name()};
    const Object<Planner> planner = subject.planner();
    run_search(*planner, search, report);
  };
  search_once(); // libraries that it loads may stay
  const std::ptrdiff_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  search_once();
  report.expect(threads_at_most(threads) <= threads, "threads that a destroyed planner leaves: {}",
                entries("/proc/self/task") - threads);
  report.expect(entries("/proc/self/fd") <= files, "open files that a destroyed planner leaves: {}",
                entries("/proc/self/fd") - files);
}

constexpr PlannerCheck kSearchChecks[] = {
    {"Search.CallsAreAtMostThePlans", "P9", nullptr, calls_are_bounded},
    {"Stop.EndsTheSearch", "P10", nullptr, ends_after_a_stop},
    {"Destroyed.LeavesNothingBehind", "P11", nullptr, leaves_nothing_behind},
};

} // namespace

std::span<const PlannerCheck> plan_search_checks() {
  return kSearchChecks;
}

std::vector<Check> planner_checks(const PlannerSubject& subject) {
  std::vector<Check> out;
  for (const auto table : {plan_answer_checks(), plan_search_checks()})
    for (Check& check : bind_checks(table, subject)) out.push_back(std::move(check));
  return out;
}

} // namespace triax::conformance
