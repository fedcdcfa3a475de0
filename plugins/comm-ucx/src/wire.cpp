// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

namespace comm_ucx {

bool Wire::carries(ucp_context_h context) {
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  if (ucp_context_query(context, &attributes) != UCS_OK) return false;
  return (attributes.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

const void* Wire::address(const void* device) const {
  return device;
}

ucs_memory_type_t Wire::type() {
  return UCS_MEMORY_TYPE_CUDA;
}

} // namespace comm_ucx
