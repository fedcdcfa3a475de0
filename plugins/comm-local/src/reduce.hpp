// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over the members of a group, in the order of the group: x0 + x1 + ..., so that the result does not
// depend on which member computes it or when. bf16 and f16 are added in fp32 and rounded once; integers wrap.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "triax/communicator.hpp"

namespace triax::comm_local {

/// False for u8 only.
bool can_reduce(triax::DType dtype) noexcept;

/// out[i] = reduction over m of sources[m][i]; out may be one of the sources.
void reduce_members(triax::DType dtype, triax::Reduce reduce, std::span<const std::byte* const> sources, std::byte* out,
                    std::int64_t elements) noexcept;

} // namespace triax::comm_local
