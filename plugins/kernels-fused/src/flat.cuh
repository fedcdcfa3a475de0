// SPDX-License-Identifier: Apache-2.0
// Contiguous elements, vector by vector; the last vector may be incomplete.
#pragma once

#include "triax/cuda/host_device.hpp"
#include "triax/cuda/launching.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

template <class T>
struct FlatVecs {
  std::int64_t count; // elements
  bool aligned;       // in all views

  TRIAX_HD std::int64_t vecs() const { return ceil_div(count, kVec<T>); }
  __device__ __forceinline__ int valid(std::int64_t vec) const { return valid_elements<T>(count, vec * kVec<T>); }
  __device__ __forceinline__ Floats<T> load(const T* from, std::int64_t vec) const {
    return kernels_fused::load(from + vec * kVec<T>, valid(vec), aligned && valid(vec) == kVec<T>);
  }
  __device__ __forceinline__ void store(T* to, std::int64_t vec, const Floats<T>& floats) const {
    kernels_fused::store(to + vec * kVec<T>, floats, valid(vec), aligned && valid(vec) == kVec<T>);
  }
};

template <class T>
FlatVecs<T> flat_vecs(std::int64_t count, std::initializer_list<const TensorView*> views) {
  return {count, aligned_views(views)};
}

/// kernel(args...) with a thread for each of `count` items.
template <class... Params, class... Args>
void launch_items(cuda::LaunchSite site, const OpContext& context, std::int64_t count, void (*kernel)(Params...),
                  const Args&... args) {
  if (count > 0) cuda::Launch(site, cuda::grid_of_elements(count), context)(kernel, args...);
}

} // namespace triax::kernels_fused
