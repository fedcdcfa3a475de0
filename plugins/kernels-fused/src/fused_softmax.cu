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

/// One warp or block per row.
/// y = softmax(scale * x) over the keys that a row sees, else 0. x, y [b, heads, queries, keys]; y may be x: the thread
/// that reads a vector last writes it. lse may be null.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kMinBlocks)
    softmax_forward(T* y, const T* x, float* lse, const __grid_constant__ cuda::MaskPlan mask, std::int64_t heads,
                    std::int64_t queries, std::int64_t keys, float scale, std::int64_t rows) {
  RowReduce<Mapping::kThreads> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const std::int64_t seen = cuda::seen_keys(mask, row / (heads * queries), row % queries, keys);
    const auto load = [&](std::int64_t column) -> Vecs<T, 1> {
      if (column >= seen) return {};
      return {load_vec(x + row * keys + column, valid_elements<T>(seen, column), Mapping::kAligned)};
    };

    RowRegisters<T, Mapping> scores; // vectors from `seen` on are never put; the last pass does not read them
    float max = -INFINITY;
    for_each_vec<T, Mapping>(seen, load, [&](int number, std::int64_t column, const Vecs<T, 1>& vecs) {
      scores.put(number, vecs);
      const int valid = valid_elements<T>(seen, column);
      const Floats<T> score = to_floats(vecs.of[0]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) max = i < valid ? Max{}(max, scale * score[i]) : max;
    });
    max = reduce.max(max);

    const auto exponentials = [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const int valid = valid_elements<T>(seen, column);
      Floats<T> out = to_floats(vecs.of[0]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) out[i] = i < valid ? expf(scale * out[i] - max) : 0.0f;
      return out;
    };
    float sum = 0;
    scores.for_each(seen, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const Floats<T> e = exponentials(column, vecs);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += e[i];
    });
    sum = reduce.sum(sum);

    scores.for_each(keys, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      Floats<T> out{};
      if (column < seen) {
        out = exponentials(column, vecs);
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) out[i] /= sum;
      }
      store(y + row * keys + column, out, valid_in_row<T, Mapping>(keys, column), Mapping::kAligned);
    });
    if (lse && thread_of_row<Mapping>() == 0) lse[row] = max + logf(sum); // -infinity if no key is seen
  });
}

/// One warp or block per row.
/// dx = scale * y * (dy - delta); dx may be dy. delta may be null: then it is the sum of dy * y.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kMinBlocks)
    softmax_backward(T* dx, const T* dy, const T* y, const float* delta, float scale, std::int64_t rows,
                     std::int64_t n) {
  RowReduce<Mapping::kThreads> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const auto load = [&](std::int64_t column) -> Vecs<T, 2> {
      const int valid = valid_in_row<T, Mapping>(n, column);
      return {load_vec(dy + row * n + column, valid, Mapping::kAligned),
              load_vec(y + row * n + column, valid, Mapping::kAligned)};
    };

    RowRegisters<T, Mapping, 2> of_row;
    float sum = 0;
    const auto keep_and_add = [&](int number, std::int64_t, const Vecs<T, 2>& vecs) {
      of_row.put(number, vecs);
      if (delta) return;
      const Floats<T> slope = to_floats(vecs.of[0]), probability = to_floats(vecs.of[1]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) sum += slope[i] * probability[i];
    };
    if (Mapping::kVecs > 0 || !delta) for_each_vec<T, Mapping>(n, load, keep_and_add);
    sum = delta ? delta[row] : reduce.sum(sum);

    of_row.for_each(n, load, [&](std::int64_t column, const Vecs<T, 2>& vecs) {
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
      launch_rows<Mapping>(Op::softmax_fwd, context, rows, softmax_forward<T, Mapping>, args.y.as<T>(),
                           args.x.as<const T>(), args.lse.as<float>(), cuda::mask_plan(args.mask), args.x.size(1),
                           args.x.size(2), keys, static_cast<float>(args.scale), rows);
    });
  });
}

void FusedKernels::do_softmax_bwd(const SoftmaxBwd& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.y), n = args.y.size(-1);
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    dispatch_row_mapping<T>(n, aligned_rows<T>(n, {&args.dx, &args.dy, &args.y}), [&]<class Mapping>(Mapping) {
      launch_rows<Mapping>(Op::softmax_bwd, context, rows, softmax_backward<T, Mapping>, args.dx.as<T>(),
                           args.dy.as<const T>(), args.y.as<const T>(), args.delta.as<const float>(),
                           static_cast<float>(args.scale), rows, n);
    });
  });
}

} // namespace triax::kernels_fused
