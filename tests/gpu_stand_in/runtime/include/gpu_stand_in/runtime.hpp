// SPDX-License-Identifier: Apache-2.0
// What libraries above the CUDA runtime (cuBLAS, NCCL) need of the runtime stand-in: work on streams, memory, errors.
//
// The functions are in the stand-in's libcudart.so.13. Threads: all functions are thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpu_stand_in/memory.hpp"

namespace triax::gpu_stand_in {

// Error of work on a stream. The device then has a sticky error, and the message is printed.
struct StreamError : std::runtime_error {
  StreamError(cudaError_t error, const std::string& message) : std::runtime_error(message), code(error) {}
  cudaError_t code;
};

// True when the work is done. It does not block: it is called again until it is done, or until the device has an error.
using Poll = std::function<bool()>;

struct StreamWork {
  std::string name; // of the call, for messages: "ncclAllReduce"
  // Called when the stream reaches the work; for captured work, at each launch of the graph. It must not block. Returns
  // how to find out whether the work is done, or null if it is done already. May throw StreamError or MachineError.
  std::function<Poll()> start;
};

// Puts work on a stream, or into the graph that the stream captures. Returns cudaSuccess, the device's sticky error,
// or cudaErrorInvalidResourceHandle (after a message) if there is no such stream.
cudaError_t enqueue(cudaStream_t stream, StreamWork work);
// The same for work that is done when `work` returns. Other work of this device may run meanwhile.
cudaError_t enqueue(cudaStream_t stream, std::string name, std::function<void()> work);

int current_device(); // of the calling thread
int device_count();
std::optional<int> device_of(cudaStream_t stream); // nullopt if there is no such stream
bool is_capturing(cudaStream_t stream);
// cudaSuccess, or what an earlier kernel or copy of the device made all later calls return.
cudaError_t sticky_error(int device);

// Memory of a device, which is created at the first call.
DeviceMemory& memory_of(int device);

struct MemoryLocation {
  int device = 0;        // of pinned memory: the one that was current when it was allocated
  Allocation allocation; // allocation.host: pinned memory
  std::byte* data;       // where the host reads and writes the address
};
// The allocation that holds the address, or nullopt: pageable memory, freed memory, no memory.
std::optional<MemoryLocation> find_memory(const void* address);
// "byte 4 of cudaMalloc 3 (64 bytes) of GPU 0, which was freed", "pageable host memory".
std::string describe_memory(const void* address);

// Host view of a range that work of `device` accesses. Both throw StreamError with `what` in the message ("ncclSend:
// sendbuff") if the range is not inside one allocation of the device or of pinned memory. data_to_read() also does if
// a byte was never written; data_to_write() marks the bytes as written. Call them when the work runs: allocations may
// be freed, and bytes be written, between the call and the work.
const std::byte* data_to_read(int device, const void* address, std::size_t bytes, std::string_view what);
std::byte* data_to_write(int device, void* address, std::size_t bytes, std::string_view what);

// Prints "[gpu stand-in] message" on stderr, in one piece.
void report(std::string_view message);

// TRIAX_GPU_PRODUCTS is zero: products write zeros instead of sums.
bool has_zero_products();

// Adds a product, a copy or a fill to what TRIAX_GPU_PROFILE writes: its arithmetic, and the bytes of device memory
// that it has to read and write. Call it when the work runs.
void count_library_call(const std::string& name, std::uint64_t flops, std::uint64_t bytes);

// TRIAX_GPU_FAIL demands that this call of `name` fails ("ncclSend:3": the third one). Counts the calls of each name.
bool is_failure_planned(std::string_view name, int device);

// A number from TRIAX_GPU_SEED and `purpose`, for choices between orders that are all legal. 0 without a seed.
std::uint64_t seed_for(std::string_view purpose);

} // namespace triax::gpu_stand_in
