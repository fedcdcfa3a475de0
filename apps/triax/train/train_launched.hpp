// SPDX-License-Identifier: Apache-2.0
// `triax train` as one rank of a job, started by Triax's launcher, torchrun, Open MPI or Slurm.
//
// Ownership: borrows its arguments. Blocking: until training ends. Errors: printed, and in the exit status.
#pragma once

#include "launch/environment.hpp"
#include "train/train_files.hpp"

namespace triax::app {

int train_launched(const TrainArguments& arguments, const launch::Environment& environment);

} // namespace triax::app
