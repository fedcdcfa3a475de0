// Blocks of memory: of the GPU, pinned on the host, and plain.
//
// Threads: the rank's main thread. Ownership: a block frees what it holds. Blocking: taking and freeing memory of the
// GPU, or pinned memory, waits for the GPU. Errors: Error naming the bytes asked for and those left.
#pragma once

#include <cuda_runtime_api.h>

#include "triax/device.hpp"

namespace triax::cuda {

class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override;
};

class PinnedMemory final : public Memory {
 public:
  explicit PinnedMemory(std::size_t bytes, unsigned flags = cudaHostAllocPortable);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() override;
};

class PlainMemory final : public Memory {
 public:
  explicit PlainMemory(std::size_t bytes);
  PlainMemory(const PlainMemory&) = delete;
  PlainMemory& operator=(const PlainMemory&) = delete;
  ~PlainMemory() override;
};

} // namespace triax::cuda
