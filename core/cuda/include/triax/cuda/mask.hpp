// SPDX-License-Identifier: Apache-2.0
// How many keys a query can see, for kernels and for tests on the host.
//
// Host threads: any. Kernels call these functions, too. Ownership: `lengths` is device memory (host memory in tests).
// Blocking: never. Errors: none.
#pragma once

#include <cstdint>

#include "triax/cuda/host_device.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::cuda {

/// A Mask, as kernels get it.
struct MaskPlan {
  bool causal = false;
  std::int64_t q0 = 0, k0 = 0;
  const std::int32_t* lengths = nullptr; // keys of each sample; null: no limit
};

/// The plan of a mask.
inline MaskPlan mask_plan(const Mask& mask) {
  return {mask.kind == Mask::Kind::causal, mask.q0, mask.k0,
          mask.lengths.empty() ? nullptr : mask.lengths.as<const std::int32_t>()};
}

/// Keys of a sample, of `keys` in the view, that any query may see: [0, visible).
TRIAX_HD inline std::int64_t visible_keys(const MaskPlan& mask, std::int64_t sample, std::int64_t keys) {
  std::int64_t count = keys;
  if (mask.lengths && mask.lengths[sample] - mask.k0 < count) count = mask.lengths[sample] - mask.k0;
  return count > 0 ? count : 0;
}
/// Keys among the `visible` ones that query `query` sees: [0, seen). Earlier queries do not see more.
TRIAX_HD inline std::int64_t seen_by(const MaskPlan& mask, std::int64_t query, std::int64_t visible) {
  const std::int64_t count = mask.q0 + query + 1 - mask.k0;
  if (!mask.causal || count > visible) return visible;
  return count > 0 ? count : 0;
}
/// seen_by(mask, query, visible_keys(mask, sample, keys)), in fewer registers.
TRIAX_HD inline std::int64_t seen_keys(const MaskPlan& mask, std::int64_t sample, std::int64_t query,
                                       std::int64_t keys) {
  std::int64_t count = keys;
  if (mask.causal && mask.q0 + query + 1 - mask.k0 < count) count = mask.q0 + query + 1 - mask.k0;
  if (mask.lengths && mask.lengths[sample] - mask.k0 < count) count = mask.lengths[sample] - mask.k0;
  return count > 0 ? count : 0;
}

} // namespace triax::cuda
