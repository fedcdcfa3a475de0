// SPDX-License-Identifier: Apache-2.0
// A device of the runtime stand-in: its memory, and the error that makes all later calls fail.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "gpu_stand_in/memory.hpp"

namespace triax::gpu_stand_in {

// Limits of an A100 (compute capability 8.0), from the CUDA programming guide, table of technical specifications.
constexpr int kMajor = 8, kMinor = 0;
constexpr int kMaxThreadsPerBlock = 1024;
constexpr std::size_t kSharedBytes = 48 * 1024; // without cudaFuncSetAttribute; with it, settings().shared_bytes
constexpr int kRegistersPerBlock = 65536;
constexpr unsigned kMaxGridX = 2147483647, kMaxGridYZ = 65535;
constexpr unsigned kMaxBlockXY = 1024, kMaxBlockZ = 64;

class GpuDevice {
 public:
  explicit GpuDevice(int number);

  int number() const { return number_; }
  DeviceMemory& memory() { return memory_; }
  cudaError_t sticky() const { return sticky_.load(std::memory_order_acquire); }
  void fail(cudaError_t error, const std::string& message);

 private:
  int number_;
  DeviceMemory memory_;
  std::atomic<cudaError_t> sticky_ = cudaSuccess;
};

// Created at the first call for the device, and never destroyed: work on streams may run until the process ends.
GpuDevice& device(int number);
// Null if the device was not created.
GpuDevice* find_device(int number);
// The device whose memory holds the address (allocated or not), or null.
GpuDevice* owner_of(const void* address);

void set_current_device(int number); // of the calling thread

// Installs the handler of SIGSEGV that reports accesses of the host to device memory.
void install_host_access_handler();

} // namespace triax::gpu_stand_in
