// SPDX-License-Identifier: Apache-2.0
// The fake's calls that create and end communicators, and the checks that all calls of the fake share.
#pragma once

#include "fake_world.hpp"

namespace triax::test::fake {

/// Returns null if the call is not allowed. Call it with the lock held.
Comm* usable(ncclComm_t given, const char* call, ncclResult_t& result);
/// True if a test has requested that the call fails. Call it with the lock held.
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
