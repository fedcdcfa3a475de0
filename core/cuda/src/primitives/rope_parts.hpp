// SPDX-License-Identifier: Apache-2.0
// How the rows of a position, the heads of all samples, are split for rotary positions. Threads of different parts
// compute the same angle, so there are parts only where positions and pairs are too few for the GPU.
//
// Threads: any. A pure function.
#pragma once

#include <algorithm>

#include "triax/cuda/launch.hpp"

namespace triax::cuda {

/// Half of the threads that an A100 or H100 runs at once. A part has one row or more, so there may be fewer.
inline constexpr std::int64_t kRopeThreads = 1 << 17;

/// angles: positions times pairs of a row.
constexpr Parts parts_of_rope(std::int64_t angles, std::int64_t rows) {
  return parts_of(rows, 1, std::max<std::int64_t>(kRopeThreads / angles, 1));
}

} // namespace triax::cuda
