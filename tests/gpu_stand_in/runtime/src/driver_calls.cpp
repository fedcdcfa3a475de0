// SPDX-License-Identifier: Apache-2.0
// Driver functions that the runtime returns by name: waits of a stream for a value in memory.
#include <cuda.h>

#include <atomic>
#include <bit>

#include "errors.hpp"
#include "settings.hpp"
#include "stream.hpp"

namespace triax::gpu_stand_in {

namespace {

// True when the wait is over, as cuda.h defines the flags. GEQ compares as a counter that may wrap.
bool is_reached(unsigned flags, std::uint32_t now, std::uint32_t value) {
  switch (flags) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::int32_t>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default: // CU_STREAM_WAIT_VALUE_NOR
      return ~(now | value) != 0;
  }
}

std::uint32_t* value_at(int device, CUdeviceptr address) {
  const auto found = find_memory(std::bit_cast<void*>(address));
  if (!found || (!found->allocation.host && found->device != device) ||
      found->allocation.bytes - (address - found->allocation.address) < sizeof(std::uint32_t)) {
    throw StreamError(cudaErrorIllegalAddress,
                      "cuStreamWaitValue32: no value is at " + describe_memory(std::bit_cast<void*>(address)));
  }
  return reinterpret_cast<std::uint32_t*>(found->data);
}

StreamWork wait_for_value(int device, CUdeviceptr address, std::uint32_t value, unsigned flags) {
  return {"cuStreamWaitValue32", [=]() -> Poll {
            std::uint32_t* const at = value_at(device, address);
            return [=] {
              return is_reached(flags, std::atomic_ref<std::uint32_t>(*at).load(std::memory_order_acquire), value);
            };
          }};
}

CUresult result_of(cudaError_t error) {
  // CUresult and cudaError_t agree in the values of the errors that calls give.
  return static_cast<CUresult>(error);
}

CUresult wait_value(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return result_of(call("cuStreamWaitValue32", Check::kSticky, [&] {
    const unsigned condition = flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
    const bool flushes = condition != flags;
    if (condition > CU_STREAM_WAIT_VALUE_NOR) {
      throw CallError(cudaErrorNotSupported, "the stand-in does not know flags " + std::to_string(flags));
    }
    if (flushes && settings().rdma_writes != RdmaWrites::kFlushedByWaits) {
      throw CallError(cudaErrorNotSupported,
                      "CU_STREAM_WAIT_VALUE_FLUSH needs a device whose waits flush (TRIAX_GPU_RDMA_WRITES)");
    }
    if (address % sizeof(std::uint32_t) != 0) {
      throw CallError(cudaErrorInvalidValue, "the address is not a multiple of 4");
    }
    const StreamPtr stream = find_stream(handle);
    const int device = stream->device().number();
    try {
      value_at(device, address);
    } catch (const StreamError& e) {
      throw CallError(cudaErrorInvalidValue, e.what());
    }
    if (settings().log) {
      report("GPU " + std::to_string(device) + ", " + stream->name() + ": waits for a value" +
             (flushes ? ", then flushes writes of network cards" : ""));
    }
    submit(*stream, wait_for_value(device, address, value, condition));
  }));
}

} // namespace

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of CUDA have its global names

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                        unsigned long long, cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", Check::kSticky, [&] {
    const bool known = std::string(symbol) == "cuStreamWaitValue32" && settings().wait_values;
    *function = known ? reinterpret_cast<void*>(&wait_value) : nullptr;
    if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (!known && settings().log) report("driver function " + std::string(symbol) + " is not known");
  });
}
