// SPDX-License-Identifier: Apache-2.0
// Launches of kernels: limits, and counts of what ran.
#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <string>

#include "functions.hpp"
#include "stream.hpp"

namespace triax::gpu_stand_in {

struct LaunchShape {
  dim3 grid, block;
  std::size_t dynamic_shared_bytes = 0;
};

// Throws CallError if a GPU would not start the launch. The message names the kernel, the value and the limit.
void check_shape(const Function& function, const LaunchShape& shape);
// Registers that a block occupies: ptxas' number, in the units in which compute capability 8.0 gives them out.
int registers_of_block(int registers_per_thread, unsigned threads);

void launch(const Function& function, const LaunchShape& shape, void** args, Stream& stream);

// A kernel as it is launched: what decides how many of its blocks an SM runs.
struct LaunchedKernel {
  std::string name;
  unsigned threads = 0; // of a block
  int registers = 0;    // of a thread; 0: not known
  std::size_t shared_bytes = 0;
  auto operator<=>(const LaunchedKernel&) const = default;
};

// Adds to what TRIAX_GPU_COUNTS and TRIAX_GPU_PROFILE print at exit.
void add_counts(const LaunchedKernel& kernel, const Profile& counts);

} // namespace triax::gpu_stand_in
