// Schedules as CSV, in PyTorch's form: one row per pipeline rank, one action per cell, no heading. read_csv.hpp reads
// it.
//
//   0F0,0F1,0B0,0B1
//   1F0,1B0,1F1,1B1
//
// Threads: pure functions. Ownership: values. Blocking: never.
#pragma once

#include <span>
#include <string>

#include "schedule/program.hpp"
#include "triax/scheduler.hpp"

namespace triax::schedule {

/// The compute actions that a scheduler returned; every row ends with a newline.
std::string to_csv(const Schedule& schedule);

/// Every action of the programs of all ranks, transfers and what ends a step among them. Slots and waits are not in it:
/// they follow from the order.
std::string to_csv(std::span<const Program> programs);

} // namespace triax::schedule
