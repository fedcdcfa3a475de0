// SPDX-License-Identifier: Apache-2.0
// `triax train --max-restarts`: trains in a copy of this process, and starts another if a rank or the launcher fails or
// is lost. Each start continues from the last checkpoint.
//
// Threads: the only thread. Ownership: borrows its arguments. Blocking: until training ends. Errors: printed, and in
// the exit status.
#pragma once

#include <functional>

#include "train/train_files.hpp"

namespace triax::app {

/// The exit status of the last start. `train` runs in copies of this process.
int train_with_restarts(const TrainArguments& arguments, int max,
                        const std::function<int(const TrainArguments&)>& train);

} // namespace triax::app
