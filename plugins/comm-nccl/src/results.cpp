// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

namespace triax::comm_nccl {

namespace {

const char* name_of(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    case ncclInProgress:
      return "ncclInProgress";
    default:
      return "an unknown result";
  }
}

} // namespace

std::string version_text(int version) {
  const int major = version >= 10000 ? version / 10000 : version / 1000; // before 2.9 the code had one digit less
  const int minor = version >= 10000 ? version % 10000 / 100 : version % 1000 / 100;
  return text("{}.{}.{}", major, minor, version % 100);
}

std::string text_of(const NcclApi& api, ncclResult_t result, ncclComm_t comm) {
  std::string out = text("{} ({})", api.get_error_string(result), name_of(result));
  const char* last = api.get_last_error ? api.get_last_error(comm) : nullptr;
  if (!last || !*last) return out;
  out.append(": ").append(last);
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

std::string hint_for(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "nvidia-smi shows the state of the GPUs; set NCCL_DEBUG=WARN for details";
    case ncclSystemError:
    case ncclRemoteError:
      return "another rank may be lost, or the network may not work: set NCCL_DEBUG=INFO to see which interfaces "
             "NCCL uses; NCCL_SOCKET_IFNAME selects them";
    default:
      return "set NCCL_DEBUG=WARN for details";
  }
}

Refusals check_version(const NcclApi& api) {
  int version = 0;
  if (const ncclResult_t result = api.get_version(&version); result != ncclSuccess)
    return make_refusal(ErrorCode::kIncompatible, {}, "comm-nccl: cannot query the NCCL version: {}",
                        text_of(api, result, nullptr))
        .with_hint("{}", hint_for(result));
  if (version < kMinVersion)
    return make_refusal(ErrorCode::kIncompatible, {}, "comm-nccl: the NCCL found here is {}, but {} or newer is needed",
                        version_text(version), version_text(kMinVersion))
        .with_hint("install a newer NCCL, or put its folder first in LD_LIBRARY_PATH");
  return {};
}

void fail(const NcclApi& api, ncclResult_t result, const char* call, const std::string& where, ncclComm_t comm) {
  throw Error(text("{}: {}", call, text_of(api, result, comm)), where, hint_for(result));
}

} // namespace triax::comm_nccl
