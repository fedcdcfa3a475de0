// SPDX-License-Identifier: Apache-2.0
// Settings of the runtime stand-in, from environment variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax::gpu_stand_in {

// "cudaMalloc:3@1": the third call of cudaMalloc for device 1 fails.
struct PlannedFailure {
  std::string call;
  std::uint64_t number = 0;
  std::optional<int> device;
};

// How work of a GPU gets to see what a network card wrote into its memory (GPUDirect RDMA).
enum class RdmaWrites {
  kOrdered,        // work that runs later sees it
  kFlushedByWaits, // after a wait with CU_STREAM_WAIT_VALUE_FLUSH
  kFlushedByHost,  // after a flush by the host, or if the work is enqueued later
};

struct Settings {
  int devices = 1;
  std::size_t memory_bytes = std::size_t{8} << 30;   // of each device
  std::size_t shared_bytes = std::size_t{163} << 10; // that a block may have with cudaFuncSetAttribute
  std::uint64_t seed = 0;
  std::vector<PlannedFailure> failures;
  bool log = false;        // each launch and copy
  bool wait_values = true; // cuStreamWaitValue32 is there
  RdmaWrites rdma_writes = RdmaWrites::kOrdered;
  bool counts = false;        // print totals at exit
  std::string profile_file;   // counts of each kernel at exit, as lines of JSON
  bool zero_products = false; // products write zeros
  unsigned threads = 0;       // of the host that run blocks; 0: as many as processors
};

// Reads the environment at the first call. An invalid value ends the process with a message; values that are invalid
// when the library is loaded end it then, before the program runs.
const Settings& settings();

// Throws std::invalid_argument with what is wrong with the text.
std::vector<PlannedFailure> parse_failures(std::string_view text);
// "4096", "64K", "512M", "8G".
std::size_t parse_bytes(std::string_view text);

} // namespace triax::gpu_stand_in
