// SPDX-License-Identifier: Apache-2.0
// Groups of calls: what ncclGroupEnd() puts on a stream.
#pragma once

#include <vector>

#include "operations.hpp"

namespace triax::gpu_stand_in {

// The calling thread's group. A call outside ncclGroupStart() and ncclGroupEnd() is a separate group.
void begin_group();
void end_group(); // throws NcclError
void add_to_group(Request request, cudaStream_t stream);

} // namespace triax::gpu_stand_in
