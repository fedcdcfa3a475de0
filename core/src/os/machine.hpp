// SPDX-License-Identifier: Apache-2.0
// A description of the machine, for measurements.
//
// Threads: any. Blocking: reads /proc. Errors: none; what cannot be read is empty or 0.
#pragma once

#include <cstdint>
#include <string>

namespace triax::os {

struct Machine {
  std::string processor;       // "AMD EPYC 7763 64-Core Processor"; the architecture if the kernel does not name it
  int cores = 1;               // that this process may use
  double load = 0;             // mean number of running threads in the last minute
  std::int64_t free_bytes = 0; // memory that programs can allocate without swapping
  std::string system = {};     // kernel: "Linux 6.1.0"
};

Machine this_machine();

} // namespace triax::os
