// Norms, the search for values that are not finite, and scaling. Sums in two steps: a block for each part of the
// elements, cut by their number, into scratch; then one block over the parts.
#include "block.cuh"
#include "kernels.hpp"
#include "triax/cuda/check.hpp"
#include "triax/cuda/device.hpp"
#include "types.hpp"

namespace triax::cublas {

namespace {

using cuda::launch_stream;
using cuda::my_share;
using cuda::Parts;
using cuda::Share;

constexpr std::int64_t kLeastElements = 16 * 1024, kMostParts = 4096;

Parts parts_of_elements(std::int64_t count) {
  return cuda::parts_of(count, kLeastElements, kMostParts);
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
  using Sum = int;
  const T* x;
  __device__ int operator()(std::int64_t i) const { return isfinite(value_of(x[i])) ? 0 : 1; }
};

template <class Term>
__global__ void sum_parts(typename Term::Sum* of_parts, Term term, std::int64_t count, Parts parts) {
  for (std::int64_t part = blockIdx.x; part < parts.count; part += gridDim.x) {
    const std::int64_t begin = part * parts.length, end = begin + parts.length < count ? begin + parts.length : count;
    typename Term::Sum sum = 0;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += term(i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) of_parts[part] = sum;
  }
}

/// One block. to = or += the sum of the parts.
template <class Sum, class To>
__global__ void sum_of_parts(To* to, const Sum* of_parts, std::int64_t parts, bool added) {
  Sum sum = 0;
  for (std::int64_t part = threadIdx.x; part < parts; part += blockDim.x) sum += of_parts[part];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *to = added ? *to + sum : sum;
}

template <class Term, class To>
void launch_sum(To* to, const Term& term, std::int64_t count, bool added, const OpContext& context) {
  using Sum = typename Term::Sum;
  const cudaStream_t stream = launch_stream(context.stream);
  const Parts parts = parts_of_elements(count);
  auto* of_parts = reinterpret_cast<Sum*>(context.scratch.data());
  if (parts.count > 0) {
    const auto grid = grid_of_rows(parts.count);
    sum_parts<<<grid.blocks, grid.threads, 0, stream>>>(of_parts, term, count, parts);
  }
  sum_of_parts<<<1, cuda::kThreads, 0, stream>>>(to, static_cast<const Sum*>(of_parts), parts.count, added);
}

template <class T>
__global__ void multiply(T* x, const float* factor, std::int64_t count) {
  const Share share = my_share();
  for (std::int64_t i = share.first; i < count; i += share.step) x[i] = rounded<T>(value_of(x[i]) * *factor);
}

} // namespace

std::size_t scratch_of(const SumSquares& args) {
  return static_cast<std::size_t>(parts_of_elements(args.x.elements()).count) * sizeof(double);
}
std::size_t scratch_of(const Nonfinite& args) {
  return static_cast<std::size_t>(parts_of_elements(args.x.elements()).count) * sizeof(int);
}

void CublasKernels::do_sum_squares(const SumSquares& args, const OpContext& context) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_sum(args.out.as<double>(), Square<T>{args.x.as<const T>()}, args.x.elements(), false, context);
  });
  TRIAX_CUDA_LAUNCHED("sum_squares");
}

void CublasKernels::do_nonfinite(const Nonfinite& args, const OpContext& context) {
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch_sum(args.count.as<std::int32_t>(), NotFinite<T>{args.x.as<const T>()}, args.x.elements(), true, context);
  });
  TRIAX_CUDA_LAUNCHED("nonfinite");
}

void CublasKernels::do_scale(const Scale& args, const OpContext& context) {
  const std::int64_t count = args.x.elements();
  if (count == 0) return;
  const auto grid = grid_of_elements(count);
  const cudaStream_t stream = launch_stream(context.stream);
  by_type(args.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    multiply<<<grid.blocks, grid.threads, 0, stream>>>(args.x.as<T>(), args.factor.as<const float>(), count);
  });
  TRIAX_CUDA_LAUNCHED("scale");
}

} // namespace triax::cublas
