// Schedules as CSV, in PyTorch's form: one row per pipeline rank, one action per cell, no heading.
//
//   0F0,0F1,0B0,0B1
//   1F0,1B0,1F1,1B1
//
// Threads: pure functions. Ownership: values. Blocking: never.
#pragma once

#include <string>

#include "triax/scheduler.hpp"

namespace triax::schedule {

/// The compute actions that a scheduler returned; every row ends with a newline.
std::string to_csv(const Schedule& schedule);

} // namespace triax::schedule
