// SPDX-License-Identifier: Apache-2.0
// Compares dry runs with runs, and cost() with the FLOPs of the operations.
#include <cmath>

#include "dry_run_model.hpp"
#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr double kCostTolerance = 1e-9; // sums of large integers in double
constexpr Pass kDryRunPasses[] = {Pass::forward, Pass::backward_input, Pass::backward_weight};

void dry_runs_call_the_same_operations(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    RecordingKernels dry_kernels(nullptr);
    DryRunModel dry_run(run.model(), dry_kernels);
    for (const Pass pass : kEveryPass)
      for (std::size_t at = 0; at < run.count(); ++at) {
        if (!run.model().has_pass(pass, at)) continue;
        dry_kernels.clear();
        dry_run.run(at, pass);
        run.run(pass, at);
        const std::string differs = difference(dry_kernels.calls(), run.kernels().calls());
        report.expect(differs.empty(), "{}: {} of {}, a dry run against a run: {}", to_text(shape), name_of(pass),
                      run.model().name(at), differs);
      }
  }
}

double cost_of(const Layer& layer, Pass pass) {
  const Cost cost = layer.cost();
  return pass == Pass::forward          ? cost.forward
         : pass == Pass::backward_input ? cost.backward_input
                                        : cost.backward_weight;
}

void costs_are_counted_flops(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : parallel_shapes(subject))
    for (int rank = 0; rank < shape.tensor; ++rank) {
      const CreatedModel model(subject, shape, rank);
      RecordingKernels kernels(nullptr);
      DryRunModel dry_run(model, kernels);
      double sum = 0;
      for (std::size_t at = 0; at < model.count(); ++at)
        for (const Pass pass : kDryRunPasses) {
          kernels.clear();
          dry_run.run(at, pass);
          const double counted = model_flops(kernels.calls()), cost = cost_of(model.layer(at), pass);
          sum += cost;
          report.expect(std::abs(cost - counted) <= kCostTolerance * counted,
                        "{}, rank {}: cost() of {} of {} is {}, but its operations count {} FLOPs", to_text(shape),
                        rank, name_of(pass), model.name(at), cost, counted);
        }
      if (shape.tensor > 1) continue;
      const double formula = model.model().flops_per_sample(model.context().vocab) * static_cast<double>(shape.micro);
      report.expect(std::abs(sum - formula) <= kCostTolerance * sum,
                    "{}: flops_per_sample() gives {} for a microbatch, but the costs of its layers add up to {}",
                    to_text(shape), formula, sum);
    }
}

void ranks_post_the_same(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : parallel_shapes(subject))
    for (const std::string& differs : collective_differences(subject, shape)) report.fail(differs);
}

std::string unless_tensor_ranks(const ModelSubject& subject) {
  return subject.support.tensor.empty() ? "the model supports neither 2 nor 4 tensor ranks with these options" : "";
}

constexpr ModelCheck kDryRunChecks[] = {
    {"DryRun.CallsTheSameOperations", "M21", nullptr, dry_runs_call_the_same_operations},
    {"Cost.IsTheCountedFlops", "M22", nullptr, costs_are_counted_flops},
    {"Ranks.PostTheSameCollectives", "M24", unless_tensor_ranks, ranks_post_the_same},
};

} // namespace

std::span<const ModelCheck> dry_run_checks() {
  return kDryRunChecks;
}

} // namespace triax::conformance
