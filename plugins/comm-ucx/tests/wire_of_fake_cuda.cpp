// In place of src/wire.cpp in a build of the plugin for tests: a UCX that carries the memory of a fake CUDA device,
// told of it by the address at which it may be reached. So all of the direct way runs but what CUDA and UCX do of it.
#include "support/fake_cuda_device.hpp"
#include "wire.hpp"

namespace comm_ucx {

bool Wire::carries(ucp_context_h) {
  return true;
}

const void* Wire::address(const void* device) const {
  return static_cast<triax::test::FakeCudaStream*>(stream_->native())->alias(const_cast<void*>(device));
}

ucs_memory_type_t Wire::type() {
  return UCS_MEMORY_TYPE_HOST;
}

} // namespace comm_ucx
