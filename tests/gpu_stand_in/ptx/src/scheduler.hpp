// SPDX-License-Identifier: Apache-2.0
// Runs the warps of one block.
#pragma once

#include "warp.hpp"

namespace triax::gpu_stand_in {

// Throws MachineError.
void run_block(Block& block);

// Runs a warp until all of its lanes have ended or wait at a barrier.
void run_warp(Warp& warp);

// Intervals of shared memory: of a block that begins, and of one that an error has ended.
void begin_clock(Block& block);
void forget_clock(Block& block);

// Adds the lanes to a barrier at their warp's `barrier`, once all live lanes of the warp wait there. Opens a barrier
// with a thread count that is complete with them.
void arrive(Warp& warp);
// Opens barriers of the whole block that all threads reached. False: no warp can run.
bool open_barriers(Block& block);
[[noreturn]] void fail_deadlock(Block& block);

} // namespace triax::gpu_stand_in
