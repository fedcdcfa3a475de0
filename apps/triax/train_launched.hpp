// `triax train` as one rank of a job: started by its own launcher, or by torchrun, Open MPI or Slurm.
//
// Threads: one. Ownership: borrows its arguments. Blocking: for the length of the training. Errors: printed; the exit
// status tells.
#pragma once

#include "launch/environment.hpp"
#include "train_files.hpp"

namespace triax::app {

int train_launched(const TrainArguments& arguments, const launch::Environment& environment);

/// The result on stdout, the rest on stderr; the exit status.
int tell_result(const config::RunConfig& run, const TrainArguments& arguments, const train::LoopResult& result);

} // namespace triax::app
