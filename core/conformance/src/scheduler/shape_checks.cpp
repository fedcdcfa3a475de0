// SPDX-License-Identifier: Apache-2.0
// Answers to shapes: refusals, and equal answers in every call, object and thread.
#include <string>
#include <thread>
#include <vector>

#include "shape_sweep.hpp"

namespace triax::conformance {

namespace {

void refuses_with_reasons(const SchedulerSubject& subject, Report& report) {
  const Object<Scheduler> scheduler = subject.scheduler(0);
  const int accepted = check_refusals(*scheduler, {}, report);
  if (accepted > 0 || report.has_failed()) return;
  const PipelineShape first = swept_shapes().front();
  report.fail(text("accepts none of the {} shapes of the sweep, so its rows cannot be verified; {}: {}",
                   swept_shapes().size(), shape_text(first), scheduler->supports(first).front().message));
}

/// Compares answers of two objects, and of two calls, on shapes in two orders.
void answers_are_equal(const SchedulerSubject& subject, Report& report) {
  const Object<Scheduler> one = subject.scheduler(0), other = subject.scheduler(kSubjectRanks - 1);
  std::vector<PipelineShape> shapes = swept_shapes();
  std::vector<Refusals> first;
  for (const PipelineShape& shape : shapes) first.push_back(one->supports(shape));
  for (std::size_t i = shapes.size(); i-- > 0;) {
    const std::vector<Refusal> expected(first[i].begin(), first[i].end());
    for (const Scheduler* const scheduler : {&*one, &*other}) {
      const Refusals again = scheduler->supports(shapes[i]);
      report.expect(std::vector<Refusal>(again.begin(), again.end()) == expected,
                    "{}: supports() gives {} refusals, but {} before{}", shape_text(shapes[i]), again.size(),
                    expected.size(), scheduler == &*other ? " by an object of another rank" : "");
    }
  }
}

void rows_are_equal(const SchedulerSubject& subject, Report& report) {
  const Object<Scheduler> one = subject.scheduler(0), other = subject.scheduler(kSubjectRanks - 1);
  for_accepted_shapes(*one, report, [&](const PipelineShape& shape, const Schedule& rows) {
    const std::string in_calls = schedule_difference(rows, one->rows(shape));
    report.expect(in_calls.empty(), "{}: two calls of rows() differ: {}", shape_text(shape), in_calls);
    const std::string in_objects = schedule_difference(rows, other->rows(shape));
    report.expect(in_objects.empty(), "{}: rows() of the objects of two ranks differ: {}", shape_text(shape),
                  in_objects);
  });
}

void rows_are_equal_on_threads(const SchedulerSubject& subject, Report& report) {
  constexpr int kCallers = 4;
  const Object<Scheduler> scheduler = subject.scheduler(0);
  std::vector<PipelineShape> shapes;
  std::vector<Schedule> expected;
  for_accepted_shapes(*scheduler, report, [&](const PipelineShape& shape, const Schedule& rows) {
    shapes.push_back(shape);
    expected.push_back(rows);
  });
  const auto call = [&] {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      std::string differs;
      const std::string error =
          error_of([&] { differs = schedule_difference(expected[i], scheduler->rows(shapes[i])); });
      report.expect(error.empty() && differs.empty(), "{}: rows() differs if {} threads call it: {}{}",
                    shape_text(shapes[i]), kCallers, error, differs);
    }
  };
  std::vector<std::jthread> callers;
  for (int i = 0; i < kCallers; ++i) callers.emplace_back(call);
}

std::string unless_variants(const SchedulerSubject& subject) {
  if (subject.variants.empty()) return "it has no option with limits or choices";
  return subject.verify ? "" : "there is no verifier; triax plugins test has one";
}

void options_at_their_limits(const SchedulerSubject& subject, Report& report) {
  for (const SchedulerSubject::Variant& variant : subject.variants) {
    Object<Scheduler> scheduler;
    try {
      scheduler = variant.scheduler(0);
    } catch (const Error& error) {
      report.fail(text("{}: {}", variant.option, error.message()));
      continue;
    }
    check_refusals(*scheduler, variant.option + ", ", report);
    for_accepted_shapes(*scheduler, report, [&](const PipelineShape& shape, const Schedule& rows) {
      for (const ScheduleViolation& violation : subject.verify(rows, shape))
        report.fail(text("{}, {}: {} [{}]", variant.option, shape_text(shape), violation.message, violation.clause));
    });
  }
}

constexpr ScheduleCheck kShapeChecks[] = {
    {"Supports.RefusesWithReasonsAndKeys", "S1", nullptr, refuses_with_reasons},
    {"Supports.AnswersAreEqual", "S2", nullptr, answers_are_equal},
    {"Rows.AreEqualInEveryCallAndObject", "S2", nullptr, rows_are_equal},
    {"Rows.AreEqualOnEveryThread", "S2", nullptr, rows_are_equal_on_threads},
    {"Options.AtTheirLimitsRefuseOrGiveRows", "S7", unless_variants, options_at_their_limits},
};

} // namespace

std::span<const ScheduleCheck> shape_checks() {
  return kShapeChecks;
}

} // namespace triax::conformance
