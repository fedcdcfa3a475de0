// SPDX-License-Identifier: Apache-2.0
// Blocks of GPU memory, pinned host memory and plain host memory.
//
// Blocking: allocating and freeing GPU memory or pinned memory waits for the GPU. If a stream waits for the host then,
// freeing runs the progress loop (HostFlags::finish_waits()). Errors: Error with the requested bytes (and, for GPU
// memory, the free bytes).
#pragma once

#include <cuda_runtime_api.h>

#include "host_flags.hpp"
#include "triax/device.hpp"

namespace triax::cuda {

class DeviceMemory final : public Memory {
 public:
  DeviceMemory(std::size_t bytes, HostFlags& flags);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override;

 private:
  HostFlags& flags_;
};

class PinnedMemory final : public Memory {
 public:
  /// `flags`: of the device; null for the memory of flags.
  PinnedMemory(std::size_t bytes, HostFlags* flags, unsigned cuda_flags = cudaHostAllocPortable);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() override;

 private:
  HostFlags* flags_;
};

class PlainMemory final : public Memory {
 public:
  explicit PlainMemory(std::size_t bytes);
  PlainMemory(const PlainMemory&) = delete;
  PlainMemory& operator=(const PlainMemory&) = delete;
  ~PlainMemory() override;
};

} // namespace triax::cuda
