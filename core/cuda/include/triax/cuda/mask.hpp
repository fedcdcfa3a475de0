// How many keys a query sees, as plain numbers for kernels and for tests on the host.
//
// Threads: values, any thread; also in kernels. Ownership: lengths is the device's memory (or, in a test, the host's).
// Blocking: never. Errors: none.
#pragma once

#include <cstdint>

#include "triax/cuda/host_device.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::cuda {

struct MaskPlan {
  bool causal = false;
  std::int64_t q0 = 0, k0 = 0;
  const std::int32_t* lengths = nullptr; // of each sample; null: all keys count
};

inline MaskPlan mask_plan(const Mask& mask) {
  return {mask.kind == Mask::Kind::causal, mask.q0, mask.k0,
          mask.lengths.empty() ? nullptr : mask.lengths.as<const std::int32_t>()};
}

/// Of `keys` keys, from the first on.
TRIAX_HD inline std::int64_t seen_keys(const MaskPlan& mask, std::int64_t sample, std::int64_t query,
                                       std::int64_t keys) {
  std::int64_t count = keys;
  if (mask.causal && mask.q0 + query + 1 - mask.k0 < count) count = mask.q0 + query + 1 - mask.k0;
  if (mask.lengths && mask.lengths[sample] - mask.k0 < count) count = mask.lengths[sample] - mask.k0;
  return count > 0 ? count : 0;
}

} // namespace triax::cuda
