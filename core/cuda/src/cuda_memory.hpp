// SPDX-License-Identifier: Apache-2.0
// Blocks of GPU memory, pinned host memory and plain host memory.
//
// Blocking: allocating and freeing GPU memory or pinned memory waits for the GPU. Errors: Error with the requested
// bytes (and, for GPU memory, the free bytes).
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
