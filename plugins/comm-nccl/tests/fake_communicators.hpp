// The calls that make and end communicators, and what all calls of the fake are asked first.
//
// Threads, ownership, blocking, errors: as fake_nccl.hpp.
#pragma once

#include "fake_world.hpp"

namespace triax::test::fake {

/// Null where the call must not be. With the lock.
Comm* usable(ncclComm_t given, const char* call, ncclResult_t& result);
/// Whether the call was to fail. With the lock.
bool injected(const char* call, Comm* comm, ncclResult_t& result);

ncclResult_t comm_init_rank_config(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t comm_split(ncclComm_t given, int color, int key, ncclComm_t* made, ncclConfig_t* config);
ncclResult_t comm_get_async_error(ncclComm_t given, ncclResult_t* state);
ncclResult_t comm_finalize(ncclComm_t given);
ncclResult_t comm_destroy(ncclComm_t given);
ncclResult_t comm_abort(ncclComm_t given);
ncclResult_t comm_register(ncclComm_t given, void*, std::size_t bytes, void** handle);
ncclResult_t comm_deregister(ncclComm_t given, void*);

} // namespace triax::test::fake
