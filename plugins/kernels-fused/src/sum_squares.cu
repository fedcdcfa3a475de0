// SPDX-License-Identifier: Apache-2.0
// Sum of squares in double: a block for each part of the elements, which are split by their number only, then one block
// over the parts. If there is one part, the first launch is enough.
#include "flat.cuh"
#include "fused_kernels.hpp"
#include "reduce.cuh"
#include "scratch.hpp"

namespace triax::kernels_fused {

namespace {

/// In vectors of 16 bytes. Parts have at least 8192 elements: a matrix of 1000 x 1000 has 123.
cuda::Parts parts_of_squares(std::int64_t count, DType type) {
  const std::int64_t vec = 16 / static_cast<std::int64_t>(bytes_of(type)); // elements
  return cuda::parts_of(ceil_div(count, vec), 8 * 1024 / vec, 2048);
}

/// One block per part.
template <class T>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    partial_sums_of_squares(double* out, const T* x, FlatVecs<T> flat, cuda::Parts parts) {
  BlockReduce reduce;
  for (std::int64_t part = blockIdx.x; part < parts.count; part += gridDim.x) {
    const std::int64_t begin = part * parts.length;
    const std::int64_t end = begin + parts.length < flat.vecs() ? begin + parts.length : flat.vecs();
    double sum = 0;
    for (std::int64_t vec = begin + threadIdx.x; vec < end; vec += kBlockSize) {
      const Floats<T> floats = flat.load(x, vec);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += static_cast<double>(floats[i]) * static_cast<double>(floats[i]);
    }
    sum = reduce.sum(sum);
    if (threadIdx.x == 0) out[part] = sum;
  }
}

/// One block.
__global__ void __launch_bounds__(kBlockSize) reduce_partials(double* out, const double* partials, std::int64_t parts) {
  double sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += kBlockSize) sum += partials[part];
  sum = BlockReduce{}.sum(sum);
  if (threadIdx.x == 0) *out = sum;
}

} // namespace

std::size_t scratch_of(const SumSquares& args) {
  return static_cast<std::size_t>(parts_of_squares(args.x.elements(), args.x.dtype()).count) * sizeof(double);
}

void FusedKernels::do_sum_squares(const SumSquares& args, const OpContext& context) {
  auto* partials = reinterpret_cast<double*>(context.scratch.data());
  auto* out = args.out.as<double>();
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const FlatVecs<T> flat = flat_vecs<T>(args.x.elements(), {&args.x});
    const cuda::Parts parts = parts_of_squares(flat.count, args.x.dtype());
    if (parts.count > 0) {
      cuda::Launch(Op::sum_squares, cuda::grid_of_blocks(parts.count), context)(
          partial_sums_of_squares<T>, parts.count == 1 ? out : partials, args.x.as<const T>(), flat, parts);
    }
    if (parts.count != 1)
      cuda::Launch(Op::sum_squares, cuda::grid_of_blocks(1), context)(reduce_partials, out, partials, parts.count);
  });
}

} // namespace triax::kernels_fused
