// SPDX-License-Identifier: Apache-2.0
// The table bound to the linked NCCL and CUDA.
#include <cstdlib>

#include "api.hpp"
#include "triax/cuda/cuda_check.hpp"
#include "triax/cuda/cuda_device.hpp"

// Functions that an older NCCL lacks are null here, so that the library loads and the version check reports the error.
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister
#pragma weak ncclCommSplit
#pragma weak ncclCommFinalize
#pragma weak ncclGetLastError

namespace triax::comm_nccl {

namespace {

int current_gpu() {
  int device = 0;
  TRIAX_CUDA(cudaGetDevice(&device));
  return device;
}

/// Ignores errors: the next call also reports that of an earlier kernel.
void use_gpu(int number) {
  cudaSetDevice(number);
}

std::string gpu() {
  char id[32] = "";
  TRIAX_CUDA(cudaDeviceGetPCIBusId(id, sizeof id, current_gpu()));
  return id;
}

void* make_event() {
  cudaEvent_t event = nullptr;
  TRIAX_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/// Calls in a capture run when its graph is launched, which no event of the communicator sees.
void record_event(void* event, cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  TRIAX_CUDA(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone) return;
  TRIAX_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(event), stream));
}

/// A GPU error counts as done: no work on a failed GPU can complete.
bool event_done(void* event) {
  if (cudaEventQuery(static_cast<cudaEvent_t>(event)) != cudaErrorNotReady) return true;
  cudaGetLastError(); // clears cudaErrorNotReady, which the next launch check would report
  return false;
}

void free_event(void* event) {
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

/// Called in start(), by the main thread, while the control thread runs. setenv is safe then: the control thread reads
/// no environment, because its connection and the name lookup for it were made before it started. CUDA's threads are
/// not known to read it after the device is created, and NCCL has no threads yet.
void set_variable(const char* name, const char* value) {
  ::setenv(name, value, 1);
}

constexpr NcclApi kLinked = {
    .get_version = ncclGetVersion,
    .get_unique_id = ncclGetUniqueId,
    .get_error_string = ncclGetErrorString,
    .get_last_error = ncclGetLastError,
    .comm_init_rank_config = ncclCommInitRankConfig,
    .comm_split = ncclCommSplit,
    .comm_get_async_error = ncclCommGetAsyncError,
    .comm_finalize = ncclCommFinalize,
    .comm_destroy = ncclCommDestroy,
    .comm_abort = ncclCommAbort,
    .comm_register = ncclCommRegister,
    .comm_deregister = ncclCommDeregister,
    .group_start = ncclGroupStart,
    .group_end = ncclGroupEnd,
    .all_reduce = ncclAllReduce,
    .reduce_scatter = ncclReduceScatter,
    .all_gather = ncclAllGather,
    .broadcast = ncclBroadcast,
    .send = ncclSend,
    .recv = ncclRecv,
    .launch_stream = cuda::launch_stream,
    .gpu = gpu,
    .current_gpu = current_gpu,
    .use_gpu = use_gpu,
    .make_event = make_event,
    .record_event = record_event,
    .event_done = event_done,
    .free_event = free_event,
    .set_variable = set_variable,
};

} // namespace

const NcclApi& linked_api() {
  return kLinked;
}

} // namespace triax::comm_nccl
