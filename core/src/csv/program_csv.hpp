// SPDX-License-Identifier: Apache-2.0
// Writes schedules as CSV, in PyTorch's format: one row per pipeline rank, one action per cell, no header line.
// read_csv.hpp reads them.
//
//   0F0,0F1,0B0,0B1
//   1F0,1B0,1F1,1B1
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "schedule/program.hpp"
#include "triax/scheduler.hpp"

namespace triax::schedule {

/// The compute actions of a schedule; every row ends with a newline.
std::string to_csv(const Schedule& schedule);

/// All actions of the programs of all ranks, including transfers and the end of the step. Slots and waits are left out,
/// because they follow from the order.
std::string to_csv(std::span<const Program> programs);

} // namespace triax::schedule
