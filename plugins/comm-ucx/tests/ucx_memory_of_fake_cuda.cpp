// SPDX-License-Identifier: Apache-2.0
// Replaces src/ucx_memory.cpp in a test build of the plugin: UCX that supports the memory of a fake CUDA device, by the
// address at which the host can reach it. This tests the direct path except for CUDA and UCX's use of it.
#include "support/fake_cuda_device.hpp"
#include "ucx_memory.hpp"

namespace triax::comm_ucx {

bool UcxMemory::supports_cuda(ucp_context_h) {
  return true;
}

const void* UcxMemory::address(const void* device) const {
  return static_cast<triax::test::FakeCudaStream*>(stream_->native())->alias(const_cast<void*>(device));
}

ucs_memory_type_t UcxMemory::type() {
  return UCS_MEMORY_TYPE_HOST;
}

} // namespace triax::comm_ucx
