// Every NCCL call that this plugin makes, and the little of CUDA that neither Device nor Stream offers, as a table of
// function pointers: the plugin has the one bound to the NCCL it is linked with, tests have one that executes NCCL's
// rules on the host.
//
// Threads: as NCCL's: a communicator is entered by one thread at a time (handle.hpp sees to that). Ownership: tables
// are constants. Blocking: as NCCL's, whose communicators are all made nonblocking here; launch_stream() pumps where
// streams cannot wait for the host. Errors: results; launch_stream() and gpu() throw Error.
#pragma once

#include <nccl.h>

#include <string>

#include "triax/device.hpp"

namespace comm_nccl {

using namespace triax;

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

  /// The native stream of a stream of the rank's device, once work may be put on it.
  cudaStream_t (*launch_stream)(Stream& stream);
  /// The calling thread's GPU, by a name that no other GPU of the machine has.
  std::string (*gpu)();
  /// A point in native streams that can be asked about when they are gone; a mark is used again and again.
  void* (*make_mark)();
  void (*put_mark)(void* mark, cudaStream_t stream);
  bool (*passed)(void* mark);
  void (*free_mark)(void* mark);
  /// Sets a variable of this process's environment, for NCCL to read.
  void (*set_variable)(const char* name, const char* value);
};

/// The NCCL that this library is linked with.
const NcclApi& linked_api();

} // namespace comm_nccl
