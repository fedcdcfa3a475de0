// SPDX-License-Identifier: Apache-2.0
// How device memory is described to UCX when UCX transfers it directly.
//
// A separate file, so that a test can replace it with memory that UCX reaches without a GPU.
#pragma once

#include <ucp/api/ucp.h>

#include "triax/device.hpp"

namespace triax::comm_ucx {

class UcxMemory {
 public:
  /// `stream`: any stream of the device.
  explicit UcxMemory(triax::Stream& stream) : stream_(&stream) {}
  /// True if this UCX supports CUDA memory.
  static bool supports_cuda(ucp_context_h context);
  const void* address(const void* device) const;
  static ucs_memory_type_t type();

 private:
  [[maybe_unused]] triax::Stream* stream_; // host memory needs none
};

} // namespace triax::comm_ucx
