// SPDX-License-Identifier: Apache-2.0
// Norms, the search for values that are not finite, and scaling. Sums in two steps: a block for each part of the
// elements, cut by their number, into scratch; then one block over the parts.
#include "block.cuh"
#include "internal.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

constexpr std::int64_t kMinElements = 16 * 1024, kMaxParts = 4096;

Parts parts_of_elements(std::int64_t count) {
  return parts_of(count, kMinElements, kMaxParts);
}

template <class T>
struct Square {
  using Sum = double;
  const T* x;
  __device__ double operator()(std::int64_t i) const {
    const auto value = static_cast<double>(value_of(x[i]));
    return value * value;
  }
};
template <class T>
struct NotFinite {
  using Sum = std::int32_t;
  const T* x;
  __device__ int operator()(std::int64_t i) const { return isfinite(value_of(x[i])) ? 0 : 1; }
};

/// One block per part.
template <class Term>
__global__ void partial_element_sums(typename Term::Sum* partials, Term term, std::int64_t count, Parts parts) {
  for (std::int64_t part = blockIdx.x; part < parts.count; part += gridDim.x) {
    const std::int64_t begin = part * parts.length, end = begin + parts.length < count ? begin + parts.length : count;
    typename Term::Sum sum = 0;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += term(i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) partials[part] = sum;
  }
}

/// One block.
__global__ void sum_squares_of_parts(double* to, const double* partials, std::int64_t parts) {
  double sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += blockDim.x) sum += partials[part];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *to = sum;
}

/// One block. to += the counts of the parts, up to the largest number of its type: 2^32 would wrap to 0, "all finite".
__global__ void add_counts_of_parts(std::int32_t* to, const std::int32_t* partials, std::int64_t parts) {
  std::int64_t sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += blockDim.x) sum += partials[part];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *to = static_cast<std::int32_t>(min(*to + sum, std::int64_t{Limits<std::int32_t>::kMax}));
}

/// The sums of all parts, in scratch; then one launch of add(to, partials, parts).
template <class Term, class To>
void launch_sum(Op op, To* to, const Term& term, std::int64_t count, void (*add)(To*, const To*, std::int64_t),
                const OpContext& context) {
  using Sum = typename Term::Sum;
  const Parts parts = parts_of_elements(count);
  auto* partials = reinterpret_cast<Sum*>(context.scratch.data());
  if (parts.count > 0) {
    const Launch launch(op, grid_of_blocks(parts.count), context);
    launch(partial_element_sums<Term>, partials, term, count, parts);
  }
  const Launch launch(op, Grid{}, context);
  launch(add, to, static_cast<const Sum*>(partials), parts.count);
}

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void multiply(T* x, const float* factor, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) x[i] = rounded<T>(value_of(x[i]) * *factor);
}

} // namespace

std::size_t scratch_of(const SumSquares& args) {
  return static_cast<std::size_t>(parts_of_elements(args.x.elements()).count) * sizeof(double);
}
std::size_t scratch_of(const Nonfinite& args) {
  return static_cast<std::size_t>(parts_of_elements(args.x.elements()).count) * sizeof(std::int32_t);
}

void Primitives::do_sum_squares(const SumSquares& args, const OpContext& context) {
  by_type(args.x.dtype(), [&]<class T>(T) {
    launch_sum(Op::sum_squares, args.out.as<double>(), Square<T>{args.x.as<const T>()}, args.x.elements(),
               sum_squares_of_parts, context);
  });
}

void Primitives::do_nonfinite(const Nonfinite& args, const OpContext& context) {
  by_type(args.x.dtype(), [&]<class T>(T) {
    launch_sum(Op::nonfinite, args.count.as<std::int32_t>(), NotFinite<T>{args.x.as<const T>()}, args.x.elements(),
               add_counts_of_parts, context);
  });
}

void Primitives::do_scale(const Scale& args, const OpContext& context) {
  over_elements(Op::scale, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    launch(multiply<T>, args.x.as<T>(), args.factor.as<const float>(), count);
  });
}

} // namespace triax::cuda
