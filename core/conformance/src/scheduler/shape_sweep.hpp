// SPDX-License-Identifier: Apache-2.0
// The shapes that the suite of schedulers asks for.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "triax/conformance/scheduler_checks.hpp"

namespace triax::conformance {

using ScheduleCheck = CheckOf<SchedulerSubject>;

std::span<const ScheduleCheck> shape_checks();
std::span<const ScheduleCheck> row_checks();

/// Pipelines of 1 to 8 ranks, 1 to 4 chunks, and numbers of microbatches below, at and above p: also primes, and
/// numbers that are not multiples of p.
std::vector<PipelineShape> swept_shapes();

/// "p = 4, v = 1, m = 8"
std::string shape_text(const PipelineShape& shape);

/// Calls `body` with each swept shape that the scheduler accepts, and with its rows. What is thrown is a failure with
/// the shape. Returns the number of shapes.
int for_accepted_shapes(const Scheduler& scheduler, Report& report,
                        const std::function<void(const PipelineShape&, const Schedule&)>& body);

/// Fails for each shape whose refusal by `scheduler` is not as clause S1 demands. Returns the number of shapes that it
/// accepts.
int check_refusals(const Scheduler& scheduler, const std::string& options, Report& report);

/// Empty if two schedules are equal; else where they first differ.
std::string schedule_difference(const Schedule& a, const Schedule& b);

} // namespace triax::conformance
