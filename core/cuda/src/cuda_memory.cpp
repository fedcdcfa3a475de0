// SPDX-License-Identifier: Apache-2.0
#include "cuda_memory.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "base/bytes_text.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/error.hpp"

namespace triax::cuda {

namespace {

constexpr std::align_val_t kAlign{Arena::kAlignment};

/// Size 0 also gets an address, because an arena takes null for a plan without memory.
std::size_t at_least_one(std::size_t bytes) {
  return std::max<std::size_t>(bytes, 1);
}

void* take_device(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, at_least_one(bytes));
  if (error == cudaSuccess) return data;
  if (error != cudaErrorMemoryAllocation) fail(error, "cudaMalloc", __FILE__, __LINE__);
  cudaGetLastError();
  std::size_t left = 0, all = 0;
  TRIAX_CUDA(cudaMemGetInfo(&left, &all));
  throw Error(text("the GPU cannot allocate {} of memory: {} of {} are free", bytes_text(bytes), bytes_text(left),
                   bytes_text(all)),
              {}, hint_for(error));
}

void* take_pinned(std::size_t bytes, unsigned flags) {
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, at_least_one(bytes), flags);
  if (error == cudaSuccess) return data;
  if (error != cudaErrorMemoryAllocation) fail(error, "cudaHostAlloc", __FILE__, __LINE__);
  cudaGetLastError();
  throw Error(text("the host cannot allocate {} of pinned memory", bytes_text(bytes)), {},
              "use a smaller batch.global or sequence, or raise the limit of locked memory (ulimit -l)");
}

void* take_plain(std::size_t bytes) {
  try {
    return ::operator new(bytes, kAlign);
  } catch (const std::bad_alloc&) {
    throw Error(text("the host cannot allocate {} bytes of memory", bytes));
  }
}

} // namespace

DeviceMemory::DeviceMemory(std::size_t bytes, HostFlags& flags) : Memory(take_device(bytes), bytes), flags_(flags) {}
DeviceMemory::~DeviceMemory() {
  flags_.finish_waits();
  cudaFree(data()); // an error here comes from an earlier kernel; the wait for that kernel reports it
}

PinnedMemory::PinnedMemory(std::size_t bytes, HostFlags* flags, unsigned cuda_flags)
    : Memory(take_pinned(bytes, cuda_flags), bytes), flags_(flags) {}
PinnedMemory::~PinnedMemory() {
  if (flags_) flags_->finish_waits();
  cudaFreeHost(data());
}

PlainMemory::PlainMemory(std::size_t bytes) : Memory(take_plain(bytes), bytes) {}
PlainMemory::~PlainMemory() {
  ::operator delete(data(), kAlign);
}

} // namespace triax::cuda
