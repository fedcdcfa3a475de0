// SPDX-License-Identifier: Apache-2.0
// RecomputeSteps: each step alone, among tensors that hold nothing. So every choice of steps has the bits of the
// forward.
#include <algorithm>
#include <cstring>

#include "dry_run_model.hpp"
#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

bool is_listed(const std::vector<int>& tensors, std::size_t index) {
  return std::ranges::find(tensors, static_cast<int>(index)) != tensors.end();
}

bool outlives_forward(Life life) {
  return life == Life::forward_to_input || life == Life::forward_to_weight;
}

/// Why the steps cannot be run; empty: they can.
std::string wrong_steps(std::span<const RecomputeStep> steps, const std::vector<StashSpec>& stash) {
  std::vector<bool> is_written(stash.size(), false);
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const RecomputeStep& step = steps[at];
    if (step.name.empty() || step.name.find(' ') != std::string::npos)
      return text("the name \"{}\" of step {} is empty or has a space", step.name, at);
    if (std::ranges::find(steps.first(at), step.name, &RecomputeStep::name) != steps.begin() + static_cast<int>(at))
      return text("two steps have the name {}", step.name);
    for (const std::vector<int>* const list : {&step.writes, &step.reads})
      for (const int index : *list)
        if (index < 0 || static_cast<std::size_t>(index) >= stash.size() ||
            !outlives_forward(stash[static_cast<std::size_t>(index)].life))
          return text("{} lists {}, which is not a tensor that a backward reads from its forward", step.name, index);
    for (const int index : step.reads)
      if (!is_written[static_cast<std::size_t>(index)])
        return text("{} reads {}, which no earlier step writes", step.name,
                    stash[static_cast<std::size_t>(index)].name);
    for (const int index : step.writes) is_written[static_cast<std::size_t>(index)] = true;
  }
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (outlives_forward(stash[i].life) && !is_written[i]) return text("no step writes {}", stash[i].name);
  return {};
}

/// Tensors that the step may not use hold NaN. The stash is as before afterwards.
void run_step(ModelRun& run, RecomputeSteps& offered, int number, std::size_t at, int microbatch, Report& report) {
  const RecomputeStep& step = offered.steps()[static_cast<std::size_t>(number)];
  const std::vector<StashSpec>& stash = run.model().specs(at).stash;
  const std::vector<TensorView>& views = run.views(at, microbatch).stash;
  const std::string layer = run.model().name(at);
  std::vector<TensorBytes> before;
  for (const TensorView& view : views) before.push_back(bytes_of_tensor(view));
  Tensors expected, got;
  for (std::size_t i = 0; i < stash.size(); ++i) {
    const bool is_used = is_listed(step.reads, i) || is_listed(step.writes, i);
    if (!is_listed(step.reads, i)) ModelRun::fill_bytes(views[i], kNaN);
    if (outlives_forward(stash[i].life))
      expected[text("{}, {}", layer, stash[i].name)] = is_used ? before[i] : bytes_of_tensor(views[i]);
  }
  run.recompute_step(offered, number, at, microbatch);
  for (std::size_t i = 0; i < stash.size(); ++i) {
    if (outlives_forward(stash[i].life)) got[text("{}, {}", layer, stash[i].name)] = bytes_of_tensor(views[i]);
    std::memcpy(views[i].data(), before[i].bytes.data(), before[i].bytes.size());
  }
  expect_equal(report, run.model().shape(), text("after the step {}", step.name), got, expected);
}

void run_steps(ModelRun& run, std::size_t at, int microbatch, Report& report) {
  auto* const offered = find_extension<RecomputeSteps>(run.model().layer(at));
  if (!offered) return;
  for (std::size_t step = 0; step < offered->steps().size(); ++step)
    run_step(run, *offered, static_cast<int>(step), at, microbatch, report);
}

/// Lists come first: an index may be that of no tensor.
bool have_right_steps(const CreatedModel& model, Report& report) {
  bool out = true;
  for (std::size_t at = 0; at < model.count(); ++at) {
    auto* const offered = find_extension<RecomputeSteps>(model.layer(at));
    if (!offered) continue;
    const std::string wrong = wrong_steps(offered->steps(), model.specs(at).stash);
    report.expect(wrong.empty(), "{}: steps() of {}: {}", to_text(model.shape()), model.name(at), wrong);
    out = out && wrong.empty();
  }
  return out;
}

/// The forwards of all microbatches are before the first step: a step must not use what the last one left.
void steps_are_equal(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    if (!have_right_steps(run.model(), report)) return;
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) run.forward(microbatch);
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch)
      for (std::size_t at = run.count(); at-- > 0;) run_steps(run, at, microbatch, report);
  }
}

/// Dry runs come first: ranks that post different collectives would wait forever.
void compare_posted(const ModelSubject& subject, const ModelShape& shape, Report& report) {
  RecordingKernels kernels(nullptr);
  const CreatedModel first(subject, shape);
  DryRunModel expected(first, kernels);
  for (int rank = 0; rank < shape.tensor; ++rank) {
    const CreatedModel model(subject, shape, rank);
    if (!have_right_steps(model, report)) return;
    DryRunModel plan(model, kernels);
    for (std::size_t at = 0; at < model.count(); ++at) {
      auto *const one = find_extension<RecomputeSteps>(first.layer(at)), *const other = find_extension<RecomputeSteps>(
                                                                             model.layer(at));
      const bool as_many = one && other ? one->steps().size() == other->steps().size() : one == other;
      report.expect(as_many, "{}: {} has other steps on rank {} than on rank 0", to_text(shape), model.name(at), rank);
      for (std::size_t step = 0; as_many && one && step < one->steps().size(); ++step) {
        kernels.clear();
        expected.tensor().clear();
        expected.recompute_step(*one, static_cast<int>(step), at);
        plan.tensor().clear();
        plan.recompute_step(*other, static_cast<int>(step), at);
        const std::vector<Collective>&got = plan.tensor().collectives(), &wanted = expected.tensor().collectives();
        report.expect(got == wanted, "{}: the step {} of {} posts {} on rank {}, but {} on rank 0", to_text(shape),
                      one->steps()[step].name, model.name(at), collectives_text(got), rank, collectives_text(wanted));
      }
    }
  }
}

void ranks_run_steps(const ModelSubject& subject, Report& report) {
  const std::vector<ModelShape> shapes = shapes_of_several(subject);
  for (const ModelShape& shape : shapes) compare_posted(subject, shape, report);
  if (report.has_failed()) return;
  for (const ModelShape& shape : shapes)
    run_model_ranks(subject, shape, report, [&](ModelRun& run, Communicator*) {
      run.forward();
      for (std::size_t at = run.count(); at-- > 0;) run_steps(run, at, 0, report);
    });
}

std::string unless_steps(const ModelSubject& subject) {
  const CreatedModel model(subject, most_precise_shape(subject));
  for (std::size_t at = 0; at < model.count(); ++at)
    if (find_extension<RecomputeSteps>(model.layer(at))) return {};
  return "no layer offers RecomputeSteps";
}

std::string unless_steps_on_ranks(const ModelSubject& subject) {
  const std::string reason = unless_steps(subject);
  return reason.empty() ? tensor_rank_skip_reason(subject) : reason;
}

constexpr ModelCheck kStepChecks[] = {
    {"RecomputeSteps.WriteTheSameStash", "M28", unless_steps, steps_are_equal},
    {"Ranks.RunStepsWithEqualBits", "M28", unless_steps_on_ranks, ranks_run_steps},
};

} // namespace

std::span<const ModelCheck> step_checks() {
  return kStepChecks;
}

} // namespace triax::conformance
