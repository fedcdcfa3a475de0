// SPDX-License-Identifier: Apache-2.0
#include "ucx_memory.hpp"

namespace triax::comm_ucx {

bool UcxMemory::supports_cuda(ucp_context_h context) {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  if (ucp_context_query(context, &attributes) != UCS_OK) return false;
  return (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

const void* UcxMemory::address(const void* device) const {
  return device;
}

ucs_memory_type_t UcxMemory::type() {
  return UCS_MEMORY_TYPE_CUDA;
}

} // namespace triax::comm_ucx
