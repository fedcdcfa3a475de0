// A schedule out of a file: for schedulers whose rows somebody else has made.
//
// Threads: any. Ownership: values. Blocking: reads the file. Errors: Error naming the file, the line and the cell, both
// from 1, with the next step.
//
// The form is PyTorch's: one line per pipeline rank, one action per cell, no heading. Empty cells are idle slots of a
// drawing and mean nothing; the order of a line's actions is all that counts.
//
//   0F0,0F1,0B0,0B1
//   1F0,1B0,1F1,1B1
//
// A stage is on the rank whose line names it, each rank has as many as the others, and stages and microbatches count
// from 0 without gaps. Whether every action is there and in an order that works is for the core to prove, as of any
// other rows.
#pragma once

#include <filesystem>

#include "triax/export.hpp"
#include "triax/scheduler.hpp"

namespace triax {

struct CsvSchedule {
  PipelineShape shape; // p the lines, v a rank's stages, m the microbatches
  Schedule schedule;
};

/// Of compute actions alone: F, B, I, W.
TRIAX_API CsvSchedule read_schedule_csv(const std::filesystem::path& file);

} // namespace triax
