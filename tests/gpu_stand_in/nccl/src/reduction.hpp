// SPDX-License-Identifier: Apache-2.0
// Types of NCCL, and sums of them.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace triax::gpu_stand_in {

// 0 for a type that is not known.
std::size_t bytes_of(ncclDataType_t type);
const char* name_of(ncclDataType_t type);
bool is_known(ncclRedOp_t reduction); // sum, product, maximum, minimum

// into = into (reduction) from, for `count` elements. Sums of 16-bit types are rounded after each addition.
void reduce(void* into, const void* from, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction);

} // namespace triax::gpu_stand_in
