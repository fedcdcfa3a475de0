// SPDX-License-Identifier: Apache-2.0
// Devices and device memory of the CUDA host emulator.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "support/host_cuda/streams.hpp"
#include "triax/error.hpp"

namespace triax::test::host_cuda {

namespace {

constexpr int kVersion = 13000, kDevices = 16;
constexpr std::size_t kAll = std::size_t{64} << 30;     // bytes of a device
constexpr std::size_t kPoisoned = std::size_t{1} << 20; // of each block: all of cuBLAS's workspace takes too long
constexpr std::align_val_t kAlign{256};

/// The list of allocated blocks.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() { ::operator delete(spare_, kAlign); }

  void* take(std::size_t bytes, cudaMemoryType type) {
    const std::lock_guard lock(mutex_);
    std::size_t there = bytes;
    void* data = nullptr;
    if (bytes > kPoisoned && bytes <= spare_bytes_) {
      data = std::exchange(spare_, nullptr);
      there = std::exchange(spare_bytes_, 0);
    } else {
      data = ::operator new(bytes, kAlign);
    }
    std::memset(data, 0xFF, std::min(bytes, kPoisoned));
    blocks_[reinterpret_cast<std::uintptr_t>(data)] = {bytes, there, type};
    return data;
  }
  bool give_back(void* data, cudaMemoryType type) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
    if (found == blocks_.end() || found->second.type != type) return false;
    const std::size_t there = found->second.there;
    blocks_.erase(found);
    if (there > spare_bytes_ && there > kPoisoned) {
      std::swap(data, spare_);
      spare_bytes_ = there;
    }
    ::operator delete(data, kAlign);
    return true;
  }
  /// Type of the block that contains all of the bytes.
  cudaMemoryType type_of(const void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    auto found = blocks_.upper_bound(at);
    if (found == blocks_.begin()) return cudaMemoryTypeUnregistered;
    --found;
    return at + bytes <= found->first + found->second.bytes ? found->second.type : cudaMemoryTypeUnregistered;
  }

 private:
  struct Block {
    std::size_t bytes, there; // requested, and allocated
    cudaMemoryType type;
  };
  std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
  void* spare_ = nullptr; // largest freed block, for reuse: the system takes long to clear new memory
  std::size_t spare_bytes_ = 0;
};

Blocks& blocks() {
  static Blocks all;
  return all;
}

/// Bytes of `rows` rows; the last row has no padding.
std::size_t span_of(std::size_t pitch, std::size_t width, std::size_t rows) {
  return rows == 0 ? 0 : (rows - 1) * pitch + width;
}

void require_way(const void* to, std::size_t to_bytes, const void* from, std::size_t from_bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
    require_device_memory("what is copied to", to, to_bytes);
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
    require_device_memory("what is copied from", from, from_bytes);
}

cudaError_t freed(void* data, cudaMemoryType type) {
  return !data || blocks().give_back(data, type) ? cudaSuccess : failed_with(cudaErrorInvalidValue);
}

} // namespace

void require_device_memory(const char* what, const void* data, std::size_t bytes) {
  if (bytes > 0 && blocks().type_of(data, bytes) == cudaMemoryTypeUnregistered)
    throw Error(text("{}: {} bytes at {} do not lie in a block of memory that a GPU reaches", what, bytes, data));
}

} // namespace triax::test::host_cuda

using namespace triax::test::host_cuda;

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= kDevices) return failed_with(cudaErrorInvalidDevice);
  *properties = {"CUDA of the host", 8, 0, kAll};
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device >= 0 && device < kDevices ? cudaSuccess : failed_with(cudaErrorInvalidDevice);
}
/// Reports no driver functions, so streams cannot wait for the host.
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  *result = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (bytes > kAll) return failed_with(cudaErrorMemoryAllocation);
  *data = blocks().take(bytes, cudaMemoryTypeDevice);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  return freed(data, cudaMemoryTypeDevice);
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  *data = blocks().take(bytes, cudaMemoryTypeHost);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  return freed(data, cudaMemoryTypeHost);
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  require_device_memory("pinned memory", host, 1);
  *device = host;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  *left = *all = kAll;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  attributes->type = blocks().type_of(data, 1);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  require_way(to, bytes, from, bytes, kind);
  put(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  if (to_pitch < width || from_pitch < width) return failed_with(cudaErrorInvalidValue);
  require_way(to, span_of(to_pitch, width, rows), from, span_of(from_pitch, width, rows), kind);
  put(stream, [=] {
    for (std::size_t row = 0; row < rows; ++row)
      std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream) {
  require_device_memory("what is set", data, bytes);
  put(stream, [=] { std::memset(data, value, bytes); });
  return cudaSuccess;
}
