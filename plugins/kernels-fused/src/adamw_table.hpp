// SPDX-License-Identifier: Apache-2.0
// The shards of one AdamW launch. They are kernel parameters, as many as fit: no allocation, copy or wait is needed.
//
// Host threads: any. Kernels read the table. Ownership: the caller's views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "triax/cuda/host_device.hpp"
#include "triax/cuda/launch.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::kernels_fused {

struct AdamWShard {
  float *p, *m, *v;
  const float* gradient;
  void* working; // may be null
  std::int64_t count;
  float decay;
  DType working_type;
  bool aligned; // all f32 data and the working weights are at multiples of 16 bytes
};

/// Shards that have the same factors as the first, in parts: a block updates one part of one shard.
struct AdamWTable {
  static constexpr int kMaxShards = 48;
  static constexpr std::int64_t kPartLength = 8192; // elements

  AdamWShard shards[kMaxShards];
  std::int64_t first_part[kMaxShards + 1]; // of each shard, and the end of the last
  int count = 0;
  double beta1, beta2;
  float eps;
  const StepScalars* scalars;

  explicit AdamWTable(const AdamW& factors)
      : first_part{},
        beta1(factors.beta1),
        beta2(factors.beta2),
        eps(static_cast<float>(factors.eps)),
        scalars(factors.scalars) {}

  std::int64_t parts() const { return first_part[count]; }

  static bool same_factors(const AdamW& a, const AdamW& b) {
    return a.beta1 == b.beta1 && a.beta2 == b.beta2 && a.eps == b.eps && a.scalars == b.scalars;
  }

  void add(const AdamW& args, bool aligned) {
    const std::int64_t elements = args.master.elements();
    shards[count] = {args.master.as<float>(),         args.m.as<float>(),   args.v.as<float>(),
                     args.gradient.as<const float>(), args.working.data(),  elements,
                     static_cast<float>(args.decay),  args.working.dtype(), aligned};
    first_part[count + 1] = first_part[count] + cuda::ceil_div(elements, kPartLength);
    ++count;
  }

  /// Adds the first of the shards, and those after it that have its factors, as many as fit. Returns their number.
  template <class Aligned>
  std::size_t add_group(std::span<const AdamW> group, Aligned aligned) {
    std::size_t added = 0;
    do {
      add(group[added], aligned(group[added]));
      ++added;
    } while (added < group.size() && count < kMaxShards && same_factors(group[0], group[added]));
    return added;
  }

  /// The shard of a part: the last shard whose first part is not after it. Empty shards have no parts.
  TRIAX_HD int shard_of(std::int64_t part) const {
    int low = 0, high = count; // first_part[low] <= part < first_part[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_part[middle] <= part) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

} // namespace triax::kernels_fused
