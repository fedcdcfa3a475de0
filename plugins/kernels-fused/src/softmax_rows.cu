// SPDX-License-Identifier: Apache-2.0
// Softmax of attention scores, with scale and mask. Hidden keys are not read: a causal row costs the keys it sees, plus
// writing zeros.
//
// core/cuda/src/primitives/softmax.cu is the same computation, element by element.
#include "fused_kernels.hpp"
#include "row.cuh"
#include "triax/cuda/mask.hpp"

namespace triax::kernels_fused {

namespace {

/// exp(scale * x - max) for the first `valid` elements of a vector, 0 for the others. Not exp.cuh's: the primitives'
/// softmax_from_lse computes these probabilities again, with expf in every type.
template <class T>
__device__ __forceinline__ Floats<T> exponentials(Floats<T> x, float scale, float max, int valid) {
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) x[i] = i < valid ? expf(scale * x[i] - max) : 0.0f;
  return x;
}

/// One warp per row of up to 4 KiB, else one block.
///
/// y = softmax(scale * x) over the keys that a row sees, else 0, for rows that stay in registers. x, y [b, heads,
/// queries, keys]; y may be x: the thread that reads a vector last writes it. lse may be null.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    softmax_forward_kept(T* y, const T* x, float* lse, const __grid_constant__ cuda::MaskPlan mask, std::int64_t heads,
                         std::int64_t queries, std::int64_t keys, float scale, std::int64_t rows) {
  constexpr int kVecs = Mapping::kVecsPerThread;
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const std::int64_t seen = cuda::seen_keys(mask, row / (heads * queries), row % queries, keys);
    const RowVecs<T, Mapping> seen_vecs(seen), vecs(keys);
    Vec16<T> scores[kVecs]{};
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (seen_vecs.has(v)) scores[v] = load_vec(x + row * keys + vecs.column(v));
    }
    float max = -INFINITY;
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!seen_vecs.has(v)) continue;
      keep_packed(scores[v]);
      const int valid = valid_elements<T>(seen, vecs.column(v));
      const Floats<T> score = to_floats(scores[v]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) max = i < valid ? Max{}(max, scale * score[i]) : max;
    }
    max = reduce.max(max);

    float sum = 0;
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!seen_vecs.has(v)) continue;
      const Floats<T> e = exponentials(kept_floats(scores[v]), scale, max, valid_elements<T>(seen, vecs.column(v)));
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += e[i];
    }
    sum = reduce.sum(sum);

#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      const std::int64_t column = vecs.column(v);
      Floats<T> out{};
      if (column < seen) {
        out = exponentials(kept_floats(scores[v]), scale, max, valid_elements<T>(seen, column));
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) out[i] /= sum;
      }
      store(y + row * keys + column, out, kVec<T>, true);
    }
    if (lse && thread_in_row<Mapping>() == 0) lse[row] = max + logf(sum); // -infinity if no key is seen
  });
}

/// One warp per row of up to 4 KiB, else one block.
///
/// The same for rows that are read again in each pass.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    softmax_forward_streamed(T* y, const T* x, float* lse, const __grid_constant__ cuda::MaskPlan mask,
                             std::int64_t heads, std::int64_t queries, std::int64_t keys, float scale,
                             std::int64_t rows) {
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const std::int64_t seen = cuda::seen_keys(mask, row / (heads * queries), row % queries, keys);
    const auto load = [&](std::int64_t column) -> Vecs<T, 1> {
      if (column >= seen) return {};
      return {load_vec(x + row * keys + column, valid_elements<T>(seen, column), Mapping::kAligned)};
    };
    float max = -INFINITY;
    for_each_vec<T, Mapping>(seen, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const int valid = valid_elements<T>(seen, column);
      const Floats<T> score = to_floats(vecs.of[0]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) max = i < valid ? Max{}(max, scale * score[i]) : max;
    });
    max = reduce.max(max);

    float sum = 0;
    for_each_vec<T, Mapping>(seen, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const Floats<T> e = exponentials(to_floats(vecs.of[0]), scale, max, valid_elements<T>(seen, column));
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += e[i];
    });
    sum = reduce.sum(sum);

    for_each_vec<T, Mapping>(keys, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      Floats<T> out{};
      if (column < seen) {
        out = exponentials(to_floats(vecs.of[0]), scale, max, valid_elements<T>(seen, column));
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) out[i] /= sum;
      }
      store(y + row * keys + column, out, valid_in_row<T, Mapping>(keys, column), Mapping::kAligned);
    });
    if (lse && thread_in_row<Mapping>() == 0) lse[row] = max + logf(sum); // -infinity if no key is seen
  });
}

/// One warp per row of up to 4 KiB, else one block.
///
/// dx = scale * y * (dy - delta), for rows that stay in registers; dx may be dy. delta may be null: then it is the sum
/// of dy * y.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    softmax_backward_kept(T* dx, const T* dy, const T* y, const float* delta, float scale, std::int64_t rows,
                          std::int64_t n) {
  constexpr int kVecs = Mapping::kVecsPerThread;
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const RowVecs<T, Mapping> vecs(n);
    Vec16<T> kept_dy[kVecs]{}, kept_y[kVecs]{};
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      kept_dy[v] = load_vec(dy + row * n + vecs.column(v));
      kept_y[v] = load_vec(y + row * n + vecs.column(v));
    }
    float sum = 0;
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      keep_packed(kept_dy[v]);
      keep_packed(kept_y[v]);
      if (delta) continue;
      const Floats<T> slope = to_floats(kept_dy[v]), probability = to_floats(kept_y[v]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += slope[i] * probability[i];
    }
    sum = delta ? delta[row] : reduce.sum(sum);

#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      Floats<T> out = kept_floats(kept_dy[v]);
      const Floats<T> probability = kept_floats(kept_y[v]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) out[i] = scale * probability[i] * (out[i] - sum);
      store(dx + row * n + vecs.column(v), out, kVec<T>, true);
    }
  });
}

/// One warp per row of up to 4 KiB, else one block.
///
/// The same for rows that are read again in each pass.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    softmax_backward_streamed(T* dx, const T* dy, const T* y, const float* delta, float scale, std::int64_t rows,
                              std::int64_t n) {
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const auto load = [&](std::int64_t column) -> Vecs<T, 2> {
      const int valid = valid_in_row<T, Mapping>(n, column);
      return {load_vec(dy + row * n + column, valid, Mapping::kAligned),
              load_vec(y + row * n + column, valid, Mapping::kAligned)};
    };
    float sum = 0;
    const auto add = [&](std::int64_t, const Vecs<T, 2>& vecs) {
      const Floats<T> slope = to_floats(vecs.of[0]), probability = to_floats(vecs.of[1]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += slope[i] * probability[i];
    };
    if (!delta) for_each_vec<T, Mapping>(n, load, add);
    sum = delta ? delta[row] : reduce.sum(sum);

    for_each_vec<T, Mapping>(n, load, [&](std::int64_t column, const Vecs<T, 2>& vecs) {
      Floats<T> out = to_floats(vecs.of[0]);
      const Floats<T> probability = to_floats(vecs.of[1]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) out[i] = scale * probability[i] * (out[i] - sum);
      store(dx + row * n + column, out, valid_in_row<T, Mapping>(n, column), Mapping::kAligned);
    });
  });
}

} // namespace

void FusedKernels::do_softmax_fwd(const SoftmaxFwd& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.x), keys = args.x.size(3);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    dispatch_row_mapping<T>(keys, aligned_rows<T>(keys, {&args.y, &args.x}), [&]<class Mapping>(Mapping) {
      const auto launch = [&](auto* kernel) {
        launch_rows<Mapping>(Op::softmax_fwd, context, rows, kernel, args.y.as<T>(), args.x.as<const T>(),
                             args.lse.as<float>(), cuda::mask_plan(args.mask), args.x.size(1), args.x.size(2), keys,
                             static_cast<float>(args.scale), rows);
      };
      if constexpr (Mapping::kVecsPerThread > 0) {
        launch(softmax_forward_kept<T, Mapping>);
      } else {
        launch(softmax_forward_streamed<T, Mapping>);
      }
    });
  });
}

void FusedKernels::do_softmax_bwd(const SoftmaxBwd& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.y), n = args.y.size(-1);
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    dispatch_row_mapping<T>(n, aligned_rows<T>(n, {&args.dx, &args.dy, &args.y}), [&]<class Mapping>(Mapping) {
      const auto launch = [&](auto* kernel) {
        launch_rows<Mapping>(Op::softmax_bwd, context, rows, kernel, args.dx.as<T>(), args.dy.as<const T>(),
                             args.y.as<const T>(), args.delta.as<const float>(), static_cast<float>(args.scale), rows,
                             n);
      };
      if constexpr (Mapping::kVecsPerThread > 0) {
        launch(softmax_backward_kept<T, Mapping>);
      } else {
        launch(softmax_backward_streamed<T, Mapping>);
      }
    });
  });
}

} // namespace triax::kernels_fused
