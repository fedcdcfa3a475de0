// SPDX-License-Identifier: Apache-2.0
// Sums of squares, in two steps: a block for each part of the elements, cut by their number, into scratch; then one
// block over the parts.
#include "block.cuh"
#include "internal.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

constexpr std::int64_t kMinElements = 16 * 1024, kMaxParts = 4096;

Parts parts_of_elements(std::int64_t count) {
  return parts_of(count, kMinElements, kMaxParts);
}

/// One block per part.
template <class T>
__global__ void partial_sums_of_squares(double* partials, const T* x, std::int64_t count, Parts parts) {
  for (std::int64_t part = blockIdx.x; part < parts.count; part += gridDim.x) {
    const std::int64_t begin = part * parts.length, end = begin + parts.length < count ? begin + parts.length : count;
    double sum = 0;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const auto value = static_cast<double>(value_of(x[i]));
      sum += value * value;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partials[part] = sum;
  }
}

/// One block.
__global__ void sum_of_parts(double* to, const double* partials, std::int64_t parts) {
  double sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += blockDim.x) sum += partials[part];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *to = sum;
}

} // namespace

std::size_t scratch_of(const SumSquares& args) {
  return static_cast<std::size_t>(parts_of_elements(args.x.elements()).count) * sizeof(double);
}

void Primitives::do_sum_squares(const SumSquares& args, const OpContext& context) {
  const std::int64_t count = args.x.elements();
  const Parts parts = parts_of_elements(count);
  auto* partials = reinterpret_cast<double*>(context.scratch.data());
  if (parts.count > 0) {
    by_type(args.x.dtype(), [&]<class T>(T) {
      const Launch launch(Op::sum_squares, grid_of_blocks(parts.count), context);
      launch(partial_sums_of_squares<T>, partials, args.x.as<const T>(), count, parts);
    });
  }
  const Launch launch(Op::sum_squares, Grid{}, context);
  launch(sum_of_parts, args.out.as<double>(), static_cast<const double*>(partials), parts.count);
}

} // namespace triax::cuda
