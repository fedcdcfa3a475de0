// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over the members of a group in host memory, for communicator backends. Elements are combined in the
// order of the group: x0 + x1 + ..., so that the result does not depend on which member computes it or when
// (CommTraits::Reduction::rank_order). bf16 and f16 are added in fp32 and rounded once; integers wrap.
//
// Threads: any. Ownership: borrows the buffers. Blocking, errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "triax/communicator.hpp"

namespace triax {

/// out[i] = reduction over m of sources[m][i], for at least one source. `out` is one of the sources, or does not
/// overlap them. u8 is not supported; Communicator refuses to reduce it.
TRIAX_API void reduce_members(DType dtype, Reduce reduce, std::span<const std::byte* const> sources, std::byte* out,
                              std::int64_t elements) noexcept;

} // namespace triax
