// SPDX-License-Identifier: Apache-2.0
// Cross-entropy over rows of logits, one block per row. The fused forward computes the maximum and the sum of
// exponentials in one pass: it rescales the sum whenever the maximum grows (Milakov & Gimelshein 2018).
//
// core/cuda/src/primitives/vocabulary.cu is the same computation, element by element, in separate passes.
#include "fused_kernels.hpp"
#include "row.cuh"
#include "softmax_exp.cuh"

namespace triax::kernels_fused {

namespace {

/// Rows of `columns` logits, the first `valid` of which count. A rank of the tensor axis has the logits of the tokens
/// from `begin` on.
template <class T, class LogitMapping>
struct Logits {
  using Element = T;
  using Mapping = LogitMapping;
  T* logits;
  const std::int32_t* targets; // tokens; may be null
  std::int64_t columns, begin, valid;

  /// use(column, count, x) for each of the thread's vectors among the first n logits of a row.
  template <class Use>
  __device__ __forceinline__ void for_each(std::int64_t row, std::int64_t n, Use use) const {
    for_each_vec<T, Mapping>(
        n,
        [&](std::int64_t column) -> Vecs<T, 1> {
          return {load_vec<T>(logits + row * columns + column, valid_elements<T>(n, column), Mapping::kAligned)};
        },
        [&](std::int64_t column, const Vecs<T, 1>& vecs) {
          use(column, valid_elements<T>(n, column), to_floats(vecs.of[0]));
        });
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

/// exp(x - max).
template <class T>
__device__ __forceinline__ float exp_minus_max(float x, float max) {
  return softmax_exp<T>((x - max) * kSoftmaxLog2e<T>);
}

/// Calls body(count), with a constant where the vector is whole: then no element is compared with it.
template <class T, class Body>
__device__ __forceinline__ void with_count(int count, Body body) {
  count == kVec<T> ? body(std::integral_constant<int, kVec<T>>{}) : body(count);
}

/// One block per row.
template <class L>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_max(const __grid_constant__ L logits, float* row_max, std::int64_t rows) {
  using T = typename L::Element;
  BlockReduce reduce;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float max = -INFINITY; // the result if a range is all padding
    logits.for_each(row, logits.valid, [&](std::int64_t, int valid, const Floats<T>& x) {
      with_count<T>(valid, [&](auto count) {
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) max = i < count ? Max{}(max, x[i]) : max;
      });
    });
    max = reduce.max(max);
    if (threadIdx.x == 0) row_max[row] = max;
  }
}

/// One block per row.
template <class L>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_sums(const __grid_constant__ L logits, const float* row_max, float* row_sum, float* row_target,
                       std::int64_t rows) {
  using T = typename L::Element;
  BlockReduce reduce;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float max = row_max[row];
    float sum = 0;
    logits.for_each(row, logits.valid, [&](std::int64_t, int valid, const Floats<T>& x) {
      with_count<T>(valid, [&](auto count) {
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
template <class L>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_forward(const __grid_constant__ L logits, float* row_max, float* row_sum, float* row_target,
                          std::int64_t rows) {
  using T = typename L::Element;
  BlockReduce reduce;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    ExpSum of_row;
    logits.for_each(row, logits.valid, [&](std::int64_t, int valid, const Floats<T>& x) {
      with_count<T>(valid, [&](auto count) { of_row = add_exponentials<T>(of_row, x, count); });
    });
    of_row = reduce.merge(of_row);
    if (threadIdx.x == 0) {
      row_max[row] = of_row.max;
      row_sum[row] = of_row.sum;
      row_target[row] = logits.target_logit(row, of_row.max);
    }
  }
}

/// One block per row.
///
/// Overwrites the logits by their gradient: (softmax - one-hot) * scale * loss scale, and 0 from `valid` on.
template <class L>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    cross_entropy_backward(const __grid_constant__ L logits, const float* row_max, const float* row_sum,
                           const StepScalars* scalars, double scale_of_loss, std::int64_t rows) {
  using T = typename L::Element;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto scale = static_cast<float>(scale_of_loss * (scalars ? static_cast<double>(scalars->loss_scale) : 1.0));
    const float max = row_max[row], scale_of_exp = scale / row_sum[row];
    const std::int64_t target = logits.target(row);
    logits.for_each(row, logits.columns, [&](std::int64_t column, int count, Floats<T> x) {
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
      store(logits.logits + row * logits.columns + column, x, count, L::Mapping::kAligned);
    });
  }
}

/// Calls body(logits) with Logits of the view's type and alignment. Rows of a vocabulary are too long to keep.
template <class Body>
void with_logits(const TensorView& logits, const TensorView& targets, std::int64_t begin, std::int64_t valid,
                 Body body) {
  cuda::by_type(logits.dtype(), [&]<class T>(T) {
    const std::int64_t columns = logits.size(-1);
    const auto with = [&]<class Mapping>(Mapping) {
      body(Logits<T, Mapping>{logits.as<T>(), targets.as<const std::int32_t>(), columns, begin, valid});
    };
    aligned_rows<T>(columns, {&logits}) ? with(RowMapping<kBlockSize, 0>{}) : with(RowMapping<kBlockSize, 0, false>{});
  });
}

} // namespace

void FusedKernels::do_xent_max(const XentMax& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, {}, 0, args.valid, [&]<class L>(const L& logits) {
    launch_rows<typename L::Mapping>(Op::xent_max, context, rows, cross_entropy_max<L>, logits, args.max.as<float>(),
                                     rows);
  });
}

void FusedKernels::do_xent_sums(const XentSums& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, args.targets, args.begin, args.valid, [&]<class L>(const L& logits) {
    launch_rows<typename L::Mapping>(Op::xent_sums, context, rows, cross_entropy_sums<L>, logits,
                                     args.max.as<const float>(), args.sum_exp.as<float>(),
                                     args.target_logit.as<float>(), rows);
  });
}

void FusedKernels::do_xent_fused(const XentFused& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, args.targets, 0, args.valid, [&]<class L>(const L& logits) {
    launch_rows<typename L::Mapping>(Op::xent_fused, context, rows, cross_entropy_forward<L>, logits,
                                     args.max.as<float>(), args.sum_exp.as<float>(), args.target_logit.as<float>(),
                                     rows);
  });
  do_xent_loss({args.loss, args.sum_exp, args.target_logit}, context);
}

void FusedKernels::do_xent_bwd(const XentBwd& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.logits);
  with_logits(args.logits, args.targets, args.begin, args.valid, [&]<class L>(const L& logits) {
    launch_rows<typename L::Mapping>(Op::xent_bwd, context, rows, cross_entropy_backward<L>, logits,
                                     args.max.as<const float>(), args.sum_exp.as<const float>(), args.scalars,
                                     args.scale, rows);
  });
}

} // namespace triax::kernels_fused
