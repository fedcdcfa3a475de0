// SPDX-License-Identifier: Apache-2.0
// Samples of a microbatch, and their running numbers, which dropout depends on.
#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

std::vector<double> losses_of(ModelRun& run, std::span<const std::int64_t> texts,
                              std::span<const std::int64_t> numbers) {
  run.put_samples(0, texts, numbers);
  run.forward();
  return values_of(run.views(run.count() - 1).out.front());
}

void samples_do_not_depend_on_others(const ModelSubject& subject, Report& report) {
  ModelShape shape = most_precise_shape(subject);
  const std::int64_t numbers[] = {4, 9, 2};
  shape.micro = 3;
  ModelRun three(subject, shape);
  shape.micro = 1;
  ModelRun one(subject, shape);
  const std::vector<double> together = losses_of(three, numbers, numbers);
  for (std::size_t i = 0; i < std::size(numbers); ++i) {
    const std::vector<double> alone =
        losses_of(one, std::span(numbers).subspan(i, 1), std::span(numbers).subspan(i, 1));
    const std::string differs =
        difference(std::span(together).subspan(i, 1), alone, 1000 * epsilon_of(shape.compute) * magnitude_of(alone));
    report.expect(differs.empty(),
                  "{}: the loss of sample {} in a microbatch of three, against a microbatch of one: {}", to_text(shape),
                  numbers[i], differs);
  }
}

void numbers_are_for_dropout_only(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    const std::int64_t texts[] = {4, 9}, others[] = {1 << 20, 77};
    ModelRun run(subject, shape);
    run.settings().dropout = false;
    const std::vector<double> expected = losses_of(run, texts, texts);
    const std::string differs = difference(losses_of(run, texts, others), expected, 0);
    report.expect(differs.empty(), "{}: the loss without dropout, with other running numbers: {}", to_text(shape),
                  differs);
    if (subject.has_dropout) continue;
    run.settings().dropout = true;
    const std::string dropped = difference(losses_of(run, texts, others), expected, 0);
    report.expect(dropped.empty(), "{}: the loss with LayerCall::dropout, for which the options do not ask: {}",
                  to_text(shape), dropped);
  }
}

void numbers_change_dropout(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    const std::int64_t texts[] = {4, 9}, others[] = {1 << 20, 77};
    ModelRun run(subject, shape);
    const std::vector<double> losses = losses_of(run, texts, texts);
    report.expect(!difference(losses_of(run, texts, others), losses, 0).empty(),
                  "{}: the loss with dropout does not depend on the running numbers of samples", to_text(shape));
  }
}

std::string unless_dropout(const ModelSubject& subject) {
  return subject.has_dropout ? "" : "the options ask for no dropout";
}

constexpr ModelCheck kSampleChecks[] = {
    {"Samples.DoNotDependOnOthers", "M17", nullptr, samples_do_not_depend_on_others},
    {"Samples.NumbersAreForDropoutOnly", "M18", nullptr, numbers_are_for_dropout_only},
    {"Samples.NumbersChangeDropout", "M18", unless_dropout, numbers_change_dropout},
};

} // namespace

std::span<const ModelCheck> sample_checks() {
  return kSampleChecks;
}

} // namespace triax::conformance
