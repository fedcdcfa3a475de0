// Device memory as UCX is told of it, where UCX carries it itself.
//
// Threads: the rank's main thread. Ownership: none. Blocking: never. Errors: none. Apart from all else, so that a test
// can put memory in its place that UCX reaches without a GPU.
#pragma once

#include <ucp/api/ucp.h>

#include "triax/device.hpp"

namespace comm_ucx {

class Wire {
 public:
  /// `stream`: any of the device.
  explicit Wire(triax::Stream& stream) : stream_(&stream) {}
  /// Whether the UCX at hand carries CUDA memory.
  static bool carries(ucp_context_h context);
  const void* address(const void* device) const;
  static ucs_memory_type_t type();

 private:
  triax::Stream* stream_;
};

} // namespace comm_ucx
