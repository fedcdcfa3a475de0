// SPDX-License-Identifier: Apache-2.0
// CUDA calls: devices and versions.
#include <cstdio>
#include <cstring>

#include "device.hpp"
#include "errors.hpp"
#include "gpu_stand_in/runtime.hpp"
#include "settings.hpp"

namespace triax::gpu_stand_in {

namespace {

constexpr int kProcessors = 108;

void require_device(int number) {
  if (number >= 0 && number < device_count()) return;
  throw CallError(cudaErrorInvalidDevice, "device " + std::to_string(number) + ", and there are " +
                                              std::to_string(device_count()) + " (TRIAX_GPU_DEVICES)");
}

int rdma_ordering() {
  return settings().rdma_writes == RdmaWrites::kOrdered ? cudaGPUDirectRDMAWritesOrderingOwner
                                                        : cudaGPUDirectRDMAWritesOrderingNone;
}

unsigned rdma_flush_options() {
  unsigned options = cudaFlushGPUDirectRDMAWritesOptionHost;
  if (settings().rdma_writes == RdmaWrites::kFlushedByWaits) options |= cudaFlushGPUDirectRDMAWritesOptionMemOps;
  return options;
}

void fill_properties(cudaDeviceProp& p, int number) {
  require_device(number);
  p = {};
  std::snprintf(p.name, sizeof p.name, "GPU stand-in (runs PTX on the host)");
  p.major = kMajor;
  p.minor = kMinor;
  p.totalGlobalMem = settings().memory_bytes;
  p.multiProcessorCount = kProcessors;
  p.warpSize = 32;
  p.sharedMemPerBlock = kSharedBytes;
  p.sharedMemPerBlockOptin = settings().shared_bytes;
  p.sharedMemPerMultiprocessor = settings().shared_bytes + 1024;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegistersPerBlock;
  p.maxThreadsPerBlock = kMaxThreadsPerBlock;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = kMaxBlockXY;
  p.maxThreadsDim[2] = kMaxBlockZ;
  p.maxGridSize[0] = kMaxGridX;
  p.maxGridSize[1] = p.maxGridSize[2] = kMaxGridYZ;
  p.l2CacheSize = 40 << 20;
  p.unifiedAddressing = p.canMapHostMemory = p.concurrentKernels = 1;
  p.asyncEngineCount = 2;
  p.pciBusID = number;
  p.gpuDirectRDMASupported = 1;
  p.gpuDirectRDMAWritesOrdering = rdma_ordering();
  p.gpuDirectRDMAFlushWritesOptions = rdma_flush_options();
}

int attribute_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return kMaxThreadsPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytes;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(settings().shared_bytes);
    case cudaDevAttrMaxRegistersPerBlock:
      return kRegistersPerBlock;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return kProcessors;
    case cudaDevAttrComputeCapabilityMajor:
      return kMajor;
    case cudaDevAttrComputeCapabilityMinor:
      return kMinor;
    case cudaDevAttrGPUDirectRDMASupported:
      return 1;
    case cudaDevAttrGPUDirectRDMAWritesOrdering:
      return rdma_ordering();
    case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
      return static_cast<int>(rdma_flush_options());
    default:
      throw CallError(cudaErrorNotSupported,
                      "the stand-in does not know device attribute " + std::to_string(attribute));
  }
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", Check::kNone, [&] { *version = CUDART_VERSION; });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", Check::kNone, [&] { *version = CUDART_VERSION; });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", Check::kNone, [&] {
    *count = device_count();
    if (*count == 0) throw CallError(cudaErrorNoDevice);
  });
}

cudaError_t cudaSetDevice(int number) {
  return call("cudaSetDevice", Check::kNone, [&] {
    require_device(number);
    set_current_device(number);
    if (const cudaError_t sticky = sticky_error(number); sticky != cudaSuccess) throw CallError(sticky);
  });
}

cudaError_t cudaGetDevice(int* number) {
  return call("cudaGetDevice", Check::kNone, [&] { *number = current_device(); });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  return call("cudaGetDeviceProperties", Check::kNone, [&] { fill_properties(*properties, number); });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
  return call("cudaDeviceGetAttribute", Check::kNone, [&] {
    require_device(number);
    *value = attribute_of(attribute);
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int number) {
  return call("cudaDeviceGetPCIBusId", Check::kNone, [&] {
    require_device(number);
    std::snprintf(text, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(number));
  });
}

} // extern "C"
