// SPDX-License-Identifier: Apache-2.0
// Cross-entropy over rows of logits, one block per row. The fused forward computes the maximum and the sum of
// exponentials in one pass: it rescales the sum whenever the maximum grows (Milakov & Gimelshein 2018).
//
// core/cuda/src/primitives/vocabulary.cu is the same computation, element by element, in separate passes.
#include "exp.cuh"
#include "fused_kernels.hpp"
#include "row.cuh"

namespace triax::kernels_fused {

namespace {

/// Rows of `columns` logits, the first `valid` of which count. A rank of the tensor axis has the logits of the tokens
/// from `begin` on.
template <class T>
struct Logits {
  T* logits;
  const std::int32_t* targets; // tokens; may be null
  std::int64_t columns, begin, valid;

  /// The vector at element `column` of the first n logits of a row.
  template <bool kAligned>
  __device__ __forceinline__ Vecs<T, 1> load(std::int64_t row, std::int64_t n, std::int64_t column) const {
    return {load_vec<T>(logits + row * columns + column, valid_elements<T>(n, column), kAligned)};
  }
  /// The column of a row's target; -1 if it is not in this range.
  __device__ __forceinline__ std::int64_t target(std::int64_t row) const {
    const std::int64_t column = targets[row] - begin;
    return column >= 0 && column < valid ? column : -1;
  }
  /// The target's logit minus the row's maximum; 0 if the target is not in this range.
  __device__ __forceinline__ float target_logit(std::int64_t row, float max) const {
    const std::int64_t column = target(row);
    return column < 0 ? 0.0f : to_float(logits[row * columns + column]) - max;
  }
};

// Rows of a vocabulary are too long to keep.
template <bool kAligned>
using LogitMapping = RowMapping<kBlockSize, 0, kAligned>;
// The kernels take a row per block: for_each_row(), which divides threads among rows, needs more registers.
static_assert(LogitMapping<true>::kThreadsPerRow == kBlockSize && LogitMapping<false>::kThreadsPerRow == kBlockSize);

/// exp(x - max).
template <class T>
__device__ __forceinline__ float exp_minus_max(float x, float max) {
  return exp_in_base<T>((x - max) * kLogOfE<T>);
}

/// Calls body(count): with a compile-time constant if the vector is whole, so that `i < count` costs nothing, else with
/// an int.
template <class T, class Body>
__device__ __forceinline__ void with_static_count(int count, Body body) {
  count == kVec<T> ? body(std::integral_constant<int, kVec<T>>{}) : body(count);
}

/// One block per row.
template <class T, bool kAligned>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_max(const __grid_constant__ Logits<T> logits, float* row_max, std::int64_t rows) {
  const std::int64_t n = logits.valid;
  BlockReduce reduce;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float max = -INFINITY; // the result if a range is all padding
    const auto load = [&](std::int64_t column) { return logits.template load<kAligned>(row, n, column); };
    for_each_vec<T, LogitMapping<kAligned>>(n, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const int valid = valid_elements<T>(n, column);
      const Floats<T> x = to_floats(vecs.of[0]);
      with_static_count<T>(valid, [&](auto count) {
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) max = i < count ? Max{}(max, x[i]) : max;
      });
    });
    max = reduce.max(max);
    if (threadIdx.x == 0) row_max[row] = max;
  }
}

/// One block per row.
template <class T, bool kAligned>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_sums(const __grid_constant__ Logits<T> logits, const float* row_max, float* row_sum,
                       float* row_target, std::int64_t rows) {
  const std::int64_t n = logits.valid;
  BlockReduce reduce;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float max = row_max[row];
    float sum = 0;
    const auto load = [&](std::int64_t column) { return logits.template load<kAligned>(row, n, column); };
    for_each_vec<T, LogitMapping<kAligned>>(n, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const int valid = valid_elements<T>(n, column);
      const Floats<T> x = to_floats(vecs.of[0]);
      with_static_count<T>(valid, [&](auto count) {
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) sum += i < count ? exp_minus_max<T>(x[i], max) : 0.0f;
      });
    });
    sum = reduce.sum(sum);
    if (threadIdx.x == 0) {
      row_sum[row] = sum;
      row_target[row] = logits.target_logit(row, max);
    }
  }
}

/// `so_far` and the first `count` elements of x.
template <class T, class Count>
__device__ __forceinline__ ExpSum add_exponentials(ExpSum so_far, const Floats<T>& x, Count count) {
  float max = so_far.max;
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) max = i < count ? Max{}(max, x[i]) : max;
  if (max > so_far.max) so_far = {max, so_far.sum * exp_minus_max<T>(so_far.max, max)};
  const bool none = so_far.max == -INFINITY; // then each x is -infinity, which adds 0, or NaN
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) {
    if (i < count) so_far.sum += exp_minus_max<T>(x[i], none ? 0.0f : so_far.max);
  }
  return so_far;
}

/// One block per row.
///
/// Maximum, sum of exponentials and target's logit in one pass.
template <class T, bool kAligned>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_forward(const __grid_constant__ Logits<T> logits, float* row_max, float* row_sum, float* row_target,
                          std::int64_t rows) {
  const std::int64_t n = logits.valid;
  BlockReduce reduce;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    ExpSum sums;
    const auto load = [&](std::int64_t column) { return logits.template load<kAligned>(row, n, column); };
    for_each_vec<T, LogitMapping<kAligned>>(n, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const int valid = valid_elements<T>(n, column);
      const Floats<T> x = to_floats(vecs.of[0]);
      with_static_count<T>(valid, [&](auto count) { sums = add_exponentials<T>(sums, x, count); });
    });
    sums = reduce.merge(sums);
    if (threadIdx.x == 0) {
      row_max[row] = sums.max;
      row_sum[row] = sums.sum;
      row_target[row] = logits.target_logit(row, sums.max);
    }
  }
}

/// One block per row.
///
/// Overwrites the logits by their gradient: (softmax - one-hot) * scale * loss scale, and 0 from `valid` on.
template <class T, bool kAligned>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_backward(const __grid_constant__ Logits<T> logits, const float* row_max, const float* row_sum,
                           const StepScalars* scalars, double scale_of_loss, std::int64_t rows) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto scale = static_cast<float>(scale_of_loss * (scalars ? static_cast<double>(scalars->loss_scale) : 1.0));
    const float max = row_max[row], scale_of_exp = scale / row_sum[row];
    const std::int64_t target = logits.target(row);
    const auto load = [&](std::int64_t column) { return logits.template load<kAligned>(row, logits.columns, column); };
    for_each_vec<T, LogitMapping<kAligned>>(logits.columns, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      Floats<T> x = to_floats(vecs.of[0]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) x[i] = exp_minus_max<T>(x[i], max) * scale_of_exp;
      if (target >= column && target - column < kVec<T>) {
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) x[i] -= column + i == target ? scale : 0.0f;
      }
      if (logits.valid < column + kVec<T>) {
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) x[i] = column + i < logits.valid ? x[i] : 0.0f;
      }
      store(logits.logits + row * logits.columns + column, x, valid_elements<T>(logits.columns, column), kAligned);
    });
  }
}

/// Calls body(Aligned{}, logits) with Logits of the view's type, and a std::bool_constant of its alignment.
template <class Body>
void with_logits(const TensorView& logits, const TensorView& targets, std::int64_t begin, std::int64_t valid,
                 Body body) {
  cuda::by_type(logits.dtype(), [&]<class T>(T) {
    const std::int64_t columns = logits.size(-1);
    const Logits<T> plan{logits.as<T>(), targets.as<const std::int32_t>(), columns, begin, valid};
    aligned_rows<T>(columns, {&logits}) ? body(std::true_type{}, plan) : body(std::false_type{}, plan);
  });
}

} // namespace

void FusedKernels::do_xent_max(const XentMax& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, {}, 0, args.valid, [&]<class Aligned, class T>(Aligned, const Logits<T>& logits) {
    launch_rows<LogitMapping<Aligned::value>>(Op::xent_max, context, rows, cross_entropy_max<T, Aligned::value>, logits,
                                              args.max.as<float>(), rows);
  });
}

void FusedKernels::do_xent_sums(const XentSums& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(
      args.logits, args.targets, args.begin, args.valid, [&]<class Aligned, class T>(Aligned, const Logits<T>& logits) {
        launch_rows<LogitMapping<Aligned::value>>(Op::xent_sums, context, rows, cross_entropy_sums<T, Aligned::value>,
                                                  logits, args.max.as<const float>(), args.sum_exp.as<float>(),
                                                  args.target_logit.as<float>(), rows);
      });
}

void FusedKernels::do_xent_fused(const XentFused& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, args.targets, 0, args.valid, [&]<class Aligned, class T>(Aligned, const Logits<T>& logits) {
    launch_rows<LogitMapping<Aligned::value>>(Op::xent_fused, context, rows, cross_entropy_forward<T, Aligned::value>,
                                              logits, args.max.as<float>(), args.sum_exp.as<float>(),
                                              args.target_logit.as<float>(), rows);
  });
  do_xent_loss({args.loss, args.sum_exp, args.target_logit}, context);
}

void FusedKernels::do_xent_bwd(const XentBwd& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, args.targets, args.begin, args.valid,
              [&]<class Aligned, class T>(Aligned, const Logits<T>& logits) {
                launch_rows<LogitMapping<Aligned::value>>(
                    Op::xent_bwd, context, rows, cross_entropy_backward<T, Aligned::value>, logits,
                    args.max.as<const float>(), args.sum_exp.as<const float>(), args.scalars, args.scale, rows);
              });
}

} // namespace triax::kernels_fused
