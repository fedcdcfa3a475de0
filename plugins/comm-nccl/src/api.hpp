// SPDX-License-Identifier: Apache-2.0
// Table of function pointers for every NCCL call of this plugin, and for the CUDA calls that Device and Stream lack.
// The plugin uses a table bound to the linked NCCL; tests use one that implements NCCL's rules on the host.
//
// Threads: one thread at a time per communicator, as NCCL requires; handle.hpp ensures it. Ownership: tables are
// constants. Blocking: as NCCL's nonblocking communicators; launch_stream() runs the progress loop if the stream cannot
// wait for the host. Errors: NCCL results; launch_stream() and gpu() throw Error.
#pragma once

#include <nccl.h>

#include <string>

#include "triax/device.hpp"

namespace triax::comm_nccl {

struct NcclApi {
  ncclResult_t (*get_version)(int* version);
  ncclResult_t (*get_unique_id)(ncclUniqueId* id);
  const char* (*get_error_string)(ncclResult_t result);
  const char* (*get_last_error)(ncclComm_t comm);

  ncclResult_t (*comm_init_rank_config)(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config);
  ncclResult_t (*comm_split)(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config);
  ncclResult_t (*comm_get_async_error)(ncclComm_t comm, ncclResult_t* state);
  ncclResult_t (*comm_finalize)(ncclComm_t comm);
  ncclResult_t (*comm_destroy)(ncclComm_t comm);
  ncclResult_t (*comm_abort)(ncclComm_t comm);
  ncclResult_t (*comm_register)(ncclComm_t comm, void* data, std::size_t bytes, void** handle);
  ncclResult_t (*comm_deregister)(ncclComm_t comm, void* handle);

  ncclResult_t (*group_start)();
  ncclResult_t (*group_end)();
  ncclResult_t (*all_reduce)(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t reduce,
                             ncclComm_t comm, cudaStream_t stream);
  ncclResult_t (*reduce_scatter)(const void* in, void* out, std::size_t out_count, ncclDataType_t type,
                                 ncclRedOp_t reduce, ncclComm_t comm, cudaStream_t stream);
  ncclResult_t (*all_gather)(const void* in, void* out, std::size_t in_count, ncclDataType_t type, ncclComm_t comm,
                             cudaStream_t stream);
  ncclResult_t (*broadcast)(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                            ncclComm_t comm, cudaStream_t stream);
  ncclResult_t (*send)(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream);
  ncclResult_t (*recv)(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream);

  /// The native stream of a stream of the rank's device, once work may be enqueued on it.
  cudaStream_t (*launch_stream)(Stream& stream);
  /// Name of the calling thread's GPU, unique on the machine.
  std::string (*gpu)();
  /// Number of the calling thread's current GPU; makes another GPU current. GPU 0 is current in a new thread.
  /// @{
  int (*current_gpu)();
  void (*use_gpu)(int number);
  /// @}
  /// CUDA events without timing. They can be recorded again, and queried after their stream is destroyed.
  void* (*make_event)();
  void (*record_event)(void* event, cudaStream_t stream);
  bool (*event_done)(void* event);
  void (*free_event)(void* event);
  /// Sets an environment variable of this process, which NCCL reads.
  void (*set_variable)(const char* name, const char* value);
};

/// The table of the NCCL that this library is linked with.
const NcclApi& linked_api();

} // namespace triax::comm_nccl
