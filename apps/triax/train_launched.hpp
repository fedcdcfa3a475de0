// SPDX-License-Identifier: Apache-2.0
// `triax train` as one rank of a job: started by its own launcher, or by torchrun, Open MPI or Slurm.
//
// Threads: one. Ownership: borrows its arguments. Blocking: for the length of the training. Errors: printed; the exit
// status tells.
#pragma once

#include "launch/environment.hpp"
#include "train_files.hpp"

namespace triax::app {

int train_launched(const TrainArguments& arguments, const launch::Environment& environment);

} // namespace triax::app
