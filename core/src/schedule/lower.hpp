// From a schedule's rows to the program of a rank: slots are given out, and the actions that end a step are added.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error if the rank lacks stages; the rows must
// have passed verify().
#pragma once

#include "schedule/program.hpp"

namespace triax::schedule {

/// One step of training: REDUCE_GRAD right after a stage's last backward; REDUCE_TIED, NORM and OPT_STEP at the end.
Program lower(const Schedule& schedule, const PipelineShape& shape, int rank);

/// Forwards alone, each microbatch through all stages before the next: evaluation.
Program lower_forward_only(const Schedule& schedule, const PipelineShape& shape, int rank);

} // namespace triax::schedule
