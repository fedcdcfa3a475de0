// SPDX-License-Identifier: Apache-2.0
// CUDA calls: device memory and pinned memory.
#include <bit>

#include "errors.hpp"
#include "pinned.hpp"
#include "stream.hpp"

namespace triax::gpu_stand_in {

namespace {

// As CUDA does, waits for all work of the device.
void wait_for_device(GpuDevice& device) {
  for (const StreamPtr& stream : streams_of(device)) stream->wait();
}

void* allocate(std::size_t bytes) {
  static std::atomic<std::uint64_t> number = 0;
  GpuDevice& owner = device(current_device());
  const auto at = owner.memory().map(bytes, "cudaMalloc " + std::to_string(++number));
  if (!at) throw CallError(cudaErrorMemoryAllocation);
  return std::bit_cast<void*>(*at);
}

void release(void* address) {
  GpuDevice* owner = owner_of(address);
  const auto found = find_memory(address);
  if (!owner || !found || found->allocation.address != reinterpret_cast<std::uint64_t>(address)) {
    throw CallError(cudaErrorInvalidValue, "no allocation begins there: " + describe_memory(address));
  }
  wait_for_device(*owner);
  owner->memory().unmap(found->allocation.address);
}

void release_pinned(void* address) {
  const auto found = pinned_memory().find(address);
  if (!found || found->allocation.address != reinterpret_cast<std::uint64_t>(address)) {
    throw CallError(cudaErrorInvalidValue, "no pinned allocation begins there: " + describe_memory(address));
  }
  for (int n = 0; n < device_count(); ++n) {
    if (GpuDevice* each = find_device(n)) wait_for_device(*each);
  }
  pinned_memory().free(address);
}

void describe_pointer(cudaPointerAttributes& attributes, const void* address) {
  attributes = {};
  attributes.type = cudaMemoryTypeUnregistered;
  attributes.device = -2;
  attributes.hostPointer = const_cast<void*>(address);
  const auto found = find_memory(address);
  if (!found) {
    if (owner_of(address)) {
      throw CallError(cudaErrorInvalidValue, "the address is in no allocation: " + describe_memory(address));
    }
    return;
  }
  const bool pinned = found->allocation.host;
  attributes.type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes.device = found->device;
  attributes.devicePointer = const_cast<void*>(address);
  attributes.hostPointer = pinned ? const_cast<void*>(address) : nullptr;
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return call("cudaMalloc", Check::kCapture, [&] {
    if (!address) throw CallError(cudaErrorInvalidValue, "the pointer to the address is null");
    *address = nullptr;
    if (bytes > 0) *address = allocate(bytes);
  });
}

cudaError_t cudaFree(void* address) {
  return call("cudaFree", Check::kCapture, [&] {
    if (address) release(address);
  });
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  return call("cudaHostAlloc", Check::kCapture, [&] {
    constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped;
    if ((flags & ~kKnown) != 0) {
      throw CallError(cudaErrorNotSupported, "the stand-in does not know flags " + std::to_string(flags));
    }
    *address = nullptr;
    if (bytes == 0) return;
    *address = pinned_memory().allocate(bytes, current_device());
    if (!*address) throw CallError(cudaErrorMemoryAllocation);
  });
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* address) {
  return call("cudaFreeHost", Check::kCapture, [&] {
    if (address) release_pinned(address);
  });
}

cudaError_t cudaHostGetDevicePointer(void** device_address, void* address, unsigned flags) {
  return call("cudaHostGetDevicePointer", Check::kSticky, [&] {
    if (flags != 0) throw CallError(cudaErrorInvalidValue, "flags must be 0, got " + std::to_string(flags));
    if (!pinned_memory().find(address)) {
      throw CallError(cudaErrorInvalidValue, "the address is not pinned memory: " + describe_memory(address));
    }
    *device_address = address;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return call("cudaMemGetInfo", Check::kSticky, [&] {
    const DeviceMemory& memory = memory_of(current_device());
    *total_bytes = memory.capacity();
    *free_bytes = memory.capacity() - memory.used();
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call("cudaPointerGetAttributes", Check::kSticky, [&] { describe_pointer(*attributes, address); });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", Check::kCapture, [&] {
    GpuDevice& own = device(current_device());
    for (const StreamPtr& stream : streams_of(own)) {
      stream->wait();
    }
    if (own.sticky() != cudaSuccess) throw CallError(own.sticky());
  });
}

} // extern "C"
