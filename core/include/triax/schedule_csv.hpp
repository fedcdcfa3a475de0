// SPDX-License-Identifier: Apache-2.0
// Reads a schedule from a CSV file: for schedulers whose rows were created by another program.
//
// Threads: any. Ownership: values. Blocking: reads the file. Errors: Error with the file, the line and the cell (both
// counted from 1), and a hint.
//
// The format is PyTorch's: one line per pipeline rank, one action per cell, no header line. Empty cells are idle slots
// of a drawing and have no meaning; only the order of the actions in a line counts.
//
//   0F0,0F1,0B0,0B1
//   1F0,1B0,1F1,1B1
//
// A stage is on the rank whose line contains it. All ranks have the same number of stages. Stages and microbatches are
// numbered from 0 without gaps. The reader does not check that all actions are present and in a valid order; the core
// verifies these rows like those of any other scheduler.
#pragma once

#include <filesystem>

#include "triax/export.hpp"
#include "triax/scheduler.hpp"

namespace triax {

/// A schedule, with the shape that the file has.
struct CsvSchedule {
  PipelineShape shape; // p: lines, v: stages of a rank, m: microbatches
  Schedule schedule;
};

/// Reads a file of compute actions only: F, B, I, W.
TRIAX_API CsvSchedule read_schedule_csv(const std::filesystem::path& file);

} // namespace triax
