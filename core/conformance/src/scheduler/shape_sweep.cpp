// SPDX-License-Identifier: Apache-2.0
#include "shape_sweep.hpp"

#include <algorithm>

#include "refusal_check.hpp"

namespace triax::conformance {

namespace {

constexpr int kSweptPipelines[] = {1, 2, 3, 4, 5, 8};
constexpr int kSweptChunks[] = {1, 2, 3, 4};
constexpr int kSweptMicrobatches[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 20, 24};
constexpr int kManyMicrobatches[] = {25, 32, 48, 96}; // with few pipelines: rows may change in the steady state
constexpr int kFewPipelines[] = {2, 4};

} // namespace

std::vector<PipelineShape> swept_shapes() {
  std::vector<PipelineShape> out;
  for (const int pipeline : kSweptPipelines)
    for (const int chunks : kSweptChunks)
      for (const int microbatches : kSweptMicrobatches) out.push_back({pipeline, chunks, microbatches});
  for (const int pipeline : kFewPipelines)
    for (const int chunks : {1, 2})
      for (const int microbatches : kManyMicrobatches) out.push_back({pipeline, chunks, microbatches});
  return out;
}

std::string shape_text(const PipelineShape& shape) {
  return text("p = {}, v = {}, m = {}", shape.pipeline, shape.chunks, shape.microbatches);
}

int for_accepted_shapes(const Scheduler& scheduler, Report& report,
                        const std::function<void(const PipelineShape&, const Schedule&)>& body) {
  int accepted = 0;
  for (const PipelineShape& shape : swept_shapes()) {
    const std::string error = error_of([&] {
      if (!scheduler.supports(shape).empty()) return;
      ++accepted;
      body(shape, scheduler.rows(shape));
    });
    report.expect(error.empty(), "{}: {}", shape_text(shape), error);
  }
  return accepted;
}

int check_refusals(const Scheduler& scheduler, const std::string& options, Report& report) {
  int accepted = 0;
  for (const PipelineShape& shape : swept_shapes()) {
    const std::string at = options + shape_text(shape);
    Refusals refusals;
    const std::string error = error_of([&] { refusals = scheduler.supports(shape); });
    report.expect(error.empty(), "{}: supports() throws \"{}\"; it must return refusals", at, error);
    if (error.empty() && refusals.empty()) ++accepted;
    check_reasons(refusals, at, report);
  }
  return accepted;
}

std::string schedule_difference(const Schedule& a, const Schedule& b) {
  if (a.ranks() != b.ranks()) return text("{} and {} rows", a.ranks(), b.ranks());
  if (a.stage_rank() != b.stage_rank()) return "the stage maps differ";
  for (int rank = 0; rank < a.ranks(); ++rank) {
    const std::vector<Action>&one = a.row(rank), &other = b.row(rank);
    if (one.size() != other.size()) return text("rank {} has {} and {} actions", rank, one.size(), other.size());
    const auto at = std::ranges::mismatch(one, other);
    if (at.in1 != one.end())
      return text("rank {}, action {}: {} and {}", rank, at.in1 - one.begin() + 1, to_text(*at.in1), to_text(*at.in2));
  }
  return {};
}

} // namespace triax::conformance
