// SPDX-License-Identifier: Apache-2.0
// Error messages from NCCL results: the result's text and name, NCCL's last error, and the next step.
//
// Threads: any. Errors: check() throws Error.
#pragma once

#include <string>

#include "api.hpp"
#include "triax/error.hpp"

namespace triax::comm_nccl {

inline constexpr int kMinVersion = NCCL_VERSION(2, 19, 0);

/// A call on a nonblocking communicator may return ncclInProgress; the other calls of an NCCL group may still follow.
inline bool goes_on(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

/// Such as "2.28.9".
std::string version_text(int version);
/// Such as "unhandled cuda error (ncclUnhandledCudaError): CUDA driver version is insufficient"; `comm` may be null.
std::string text_of(const NcclApi& api, ncclResult_t result, ncclComm_t comm);
std::string hint_for(ncclResult_t result);
/// Checks that the loaded NCCL is new enough.
Refusals check_version(const NcclApi& api);

[[noreturn]] void fail(const NcclApi& api, ncclResult_t result, const char* call, const std::string& where,
                       ncclComm_t comm);
inline void check(const NcclApi& api, ncclResult_t result, const char* call, const std::string& where,
                  ncclComm_t comm = nullptr) {
  if (result != ncclSuccess) fail(api, result, call, where, comm);
}

} // namespace triax::comm_nccl
