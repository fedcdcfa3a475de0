// SPDX-License-Identifier: Apache-2.0
// The sum of two tensors. A thread has four neighbouring elements, so that its loads are in flight together.
#include <triax/cuda/index.hpp>
#include <triax/cuda/launching.cuh>
#include <triax/cuda/rounding.hpp>

#include "kernels.hpp"

namespace triax::kernels_template {

namespace {

constexpr std::int64_t kPerThread = 4;

/// y = a + b in f32, rounded to T. y may be a or b: each element is read before it is written, by the same thread.
template <class T>
__global__ void add_fours(T* y, const T* a, const T* b, std::int64_t count) {
  const cuda::GridStride stride = cuda::grid_stride();
  for (std::int64_t first = stride.first * kPerThread; first < count; first += stride.step * kPerThread) {
    float sums[kPerThread];
    const std::int64_t width = count - first < kPerThread ? count - first : kPerThread;
    for (std::int64_t i = 0; i < width; ++i) sums[i] = cuda::value_of(a[first + i]) + cuda::value_of(b[first + i]);
    for (std::int64_t i = 0; i < width; ++i) y[first + i] = cuda::rounded<T>(sums[i]);
  }
}

} // namespace

// Views have been checked: equal shapes, contiguous, of one type that supports() has accepted. over_elements() chooses
// the grid and enqueues on the stream of the operation.
void DerivedKernels::do_add(const Add& args, const OpContext& context) {
  cuda::over_elements(Op::add, args.y, context, [&]<class T>(T, const cuda::Launch& launch, std::int64_t count) {
    launch(add_fours<T>, args.y.as<T>(), args.a.as<const T>(), args.b.as<const T>(), count);
  });
}

} // namespace triax::kernels_template
