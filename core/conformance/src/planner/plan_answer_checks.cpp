// SPDX-License-Identifier: Apache-2.0
// Answers: which plans, in which order, and equal ones in every call and object.
#include <utility>

#include "planner_check_tables.hpp"

namespace triax::conformance {

namespace {

template <char number>
void answers_keep(const PlannerSubject& subject, Report& report) {
  for_searches(subject, report, [&](const Search& search) { check_answer(number, search, report); });
}

/// Other checks leave out the searches that end because of such a plan, so all of them are made here.
void asks_for_plans_of_the_space(const PlannerSubject& subject, Report& report) {
  for_all_searches(subject, report, [&](const Search& search, bool) { check_answer('2', search, report); });
  const auto search_in = [&](const PlanTable& table, const FormulaCosts::Options& options, std::string at) {
    FormulaCosts costs(table, options);
    Search search{costs, 3, std::move(at)};
    run_search(*subject.planner(), search, report);
    check_answer('2', search, report);
  };
  for (const PlanTable& table : some_spaces())
    search_in(table, {.limit = table.limit_of(0) - 1}, text("{}, no plan fits", table.name()));
  for (const PlanTable& table : spaces_of_one_plan()) search_in(table, {}, table.name());
  search_in(empty_space(), {}, "a space without plans");
}

void expect_no_plan(const PlannerSubject& subject, FormulaCosts& costs, const std::string& at, Report& report) {
  Search search{costs, 3, at};
  if (!run_search(*subject.planner(), search, report)) return;
  report.expect(search.answer.empty(), "{}: search() must return no plan, got {}", at, search.answer.size());
}

void nothing_fits(const PlannerSubject& subject, Report& report) {
  for (const PlanTable& table : some_spaces()) {
    const std::uint64_t smallest = table.limit_of(0);
    // With the first limit, bounds() still lets plans through.
    for (const std::uint64_t limit : {smallest - 1, smallest / 2, std::uint64_t{0}}) {
      FormulaCosts costs(table, {.limit = limit});
      expect_no_plan(subject, costs, text("{}, no plan fits {} bytes", table.name(), limit), report);
    }
  }
}

void empty_space_has_no_answer(const PlannerSubject& subject, Report& report) {
  const PlanTable table = empty_space();
  FormulaCosts costs(table, {});
  expect_no_plan(subject, costs, "a space without plans", report);
}

void all_plans_are_refused(const PlannerSubject& subject, Report& report) {
  for (const PlanTable& table : some_spaces())
    for (const Refused refused : {Refused::in_bounds, Refused::in_time, Refused::in_evaluate}) {
      FormulaCosts costs(table, {.refused = refused, .refuses_all = true});
      expect_no_plan(subject, costs, text("{}, all plans are refused", table.name()), report);
    }
}

void one_plan_is_found(const PlannerSubject& subject, Report& report) {
  for (const PlanTable& table : spaces_of_one_plan())
    for (const int count : {1, 5}) {
      FormulaCosts costs(table, {});
      Search search{costs, count, text("{}, count {}", table.name(), count)};
      if (!run_search(*subject.planner(), search, report)) continue;
      const TrainingPlan& plan = table.rows().front().plan;
      report.expect(search.answer.size() == 1 && search.answer.front() == plan,
                    "{}: search() must return the only plan: {}; got {}", search.text, plan_text(plan),
                    search.answer.empty() ? "no plan" : plan_text(search.answer.front()));
    }
}

void plans_are_equal(const PlannerSubject& subject, Report& report) {
  const Object<Planner> other = subject.planner(); // for all searches: an earlier one must not change a later one
  for_searches(subject, report, [&](const Search& search) {
    const Object<Planner> fresh = subject.planner();
    for (Planner* const planner : {&*other, &*other, &*fresh}) {
      FormulaCosts costs(search.costs.table(), search.costs.options());
      Search again{costs, search.count, search.text};
      if (!run_search(*planner, again, report)) continue;
      const std::string differs = answer_difference(search.answer, again.answer);
      report.expect(differs.empty(), "{}: two answers{} differ: {}", search.text,
                    planner == &*fresh ? " of different objects" : "", differs);
    }
  });
}

constexpr PlannerCheck kAnswerChecks[] = {
    {"Answer.HasAtMostCountPlansOfTheSpaceOnce", "P1", nullptr, answers_keep<'1'>},
    {"Search.AsksForPlansOfTheSpace", "P2", nullptr, asks_for_plans_of_the_space},
    {"Answer.FitsIntoMemory", "P3", nullptr, answers_keep<'3'>},
    {"Answer.HasNoRefusedPlan", "P4", nullptr, answers_keep<'4'>},
    {"Answer.IsEmptyIfAllAreRefused", "P4", nullptr, all_plans_are_refused},
    {"Answer.IsFastestFirst", "P5", nullptr, answers_keep<'5'>},
    {"Answer.IsEmptyIfNothingFits", "P6", nullptr, nothing_fits},
    {"Answer.IsEmptyForAnEmptySpace", "P6", nullptr, empty_space_has_no_answer},
    {"Answer.IsTheOnlyPlan", "P7", nullptr, one_plan_is_found},
    {"Answer.IsEqualInEveryCallAndObject", "P8", nullptr, plans_are_equal},
};

} // namespace

std::span<const PlannerCheck> plan_answer_checks() {
  return kAnswerChecks;
}

} // namespace triax::conformance
