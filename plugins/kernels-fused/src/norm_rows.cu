// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019), reading memory once: threads keep their row in
// registers while they compute mean and variance. These are separate sums, to avoid cancellation. Rows that are too
// long or not aligned have separate kernels, which read them again in each pass.
//
// core/cuda/src/primitives/norm.cu is the same computation, element by element. The gradients of weight and bias are in
// column_sums.cu.
#include <type_traits>

#include "bias_dropout_add.cuh"
#include "fused_kernels.hpp"

namespace triax::kernels_fused {

namespace {

/// Whether a thread keeps its elements in f32, and so converts them once: at most 32 registers, and with a residual
/// only in full rows, whose code needs fewer registers.
template <class T, class Mapping, bool kResidual>
constexpr bool kKeepsFloats = Mapping::kVecsPerThread * sizeof(Floats<T>) <= 32 * sizeof(float) &&
                              (Mapping::kFull || !kResidual);
template <class T, class Mapping, bool kResidual>
constexpr unsigned forward_min_blocks() {
  if (!kKeepsFloats<T, Mapping, kResidual>) return kDefaultMinBlocks; // 128 registers for long rows
  if (kResidual) return 3;                                            // 80, for two tensors and the Philox block
  return 4;                                                           // 64
}

/// One warp per row of up to 4 KiB, else one block.
///
/// normed = (x - mean) * rstd * weight + bias, with the statistics of each row, for rows that stay in registers. x is
/// branch.x; with kResidual, it is residual + dropout(branch.x + branch.bias), and stored to branch.sum. mean_out: null
/// for rms; bias: may be null. n is branch.n: nvcc would keep the offsets of the loads for the stores, in up to nine
/// registers, if both came from one number.
template <class T, class Mapping, bool kResidual>
__global__ void __launch_bounds__(kBlockSize, (forward_min_blocks<T, Mapping, kResidual>()))
    norm_forward_kept(const __grid_constant__ BiasDropoutAddRows<T> branch, T* normed, const T* weight, const T* bias,
                      float* mean_out, float* rstd_out, std::int64_t rows, std::int64_t n, float eps) {
  constexpr bool kFloats = kKeepsFloats<T, Mapping, kResidual>;
  constexpr int kVecs = Mapping::kVecsPerThread, kBatch = kResidual && kVecs > 4 ? 4 : kVecs; // kBatch: in flight
  const bool layer_norm = mean_out != nullptr;
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const RowVecs<T, Mapping> vecs(n);
    std::conditional_t<kFloats, Floats<T>, Vec16<T>> kept[kVecs]; // x; after the second loop x - mean, if kFloats
    const DropRow philox_row = kResidual ? philox_row_of<Mapping::kAligned>(branch, row) : DropRow{};
    float sum = 0;
#pragma unroll
    for (int v0 = 0; v0 < kVecs; v0 += kBatch) {
      Vec16<T> in[kBatch]{}, residual[kBatch]{};
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (!vecs.has(v0 + i)) continue;
        const std::int64_t offset = row * branch.n + vecs.column(v0 + i);
        in[i] = load_vec(branch.x + offset);
        if (kResidual && branch.residual) residual[i] = load_vec(branch.residual + offset);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (!vecs.has(v0 + i)) continue;
        keep_packed(in[i]);
        if constexpr (kResidual) {
          keep_packed(residual[i]);
          in[i] = bias_dropout_add_store<Mapping::kAligned>(branch, row, philox_row, vecs.column(v0 + i), in[i],
                                                            residual[i]);
        }
        const Floats<T> x = to_floats(in[i]);
        if constexpr (kFloats) {
          kept[v0 + i] = x;
        } else {
          kept[v0 + i] = in[i];
        }
#pragma unroll
        for (int j = 0; j < kVec<T>; ++j) sum += x[j];
      }
    }
    const float mean = layer_norm ? reduce.sum(sum) / static_cast<float>(n) : 0.0f;

    float squares = 0;
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      Floats<T> x = kept_floats(kept[v]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) {
        x[i] -= mean;
        squares += x[i] * x[i];
      }
      if constexpr (kFloats) kept[v] = x;
    }
    const float rstd = 1 / sqrtf(reduce.sum(squares) / static_cast<float>(n) + eps);

#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      const std::int64_t column = vecs.column(v);
      Floats<T> x = kept_floats(kept[v]);
      const Floats<T> w = load_readonly(weight + column, kVec<T>, true);
      const Floats<T> b = bias ? load_readonly(bias + column, kVec<T>, true) : Floats<T>{};
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) x[i] = (kFloats ? x[i] : x[i] - mean) * rstd * w[i] + b[i];
      store(normed + row * n + column, x, kVec<T>, true);
    }
    if (thread_in_row<Mapping>() == 0) {
      if (layer_norm) mean_out[row] = mean;
      rstd_out[row] = rstd;
    }
  });
}

/// One warp per row of up to 4 KiB, else one block.
///
/// The same for rows that are read again in each pass.
template <class T, class Mapping, bool kResidual>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    norm_forward_streamed(const __grid_constant__ BiasDropoutAddRows<T> branch, T* normed, const T* weight,
                          const T* bias, float* mean_out, float* rstd_out, std::int64_t rows, std::int64_t n,
                          float eps) {
  constexpr bool kAligned = Mapping::kAligned;
  const bool layer_norm = mean_out != nullptr;
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const auto valid_at = [&](std::int64_t column) { return valid_in_row<T, Mapping>(n, column); };
    const DropRow philox_row = kResidual ? philox_row_of<kAligned>(branch, row) : DropRow{};
    float sum = 0;
    for_each_vec<T, Mapping>(
        n, [&](std::int64_t column) { return load_operands<kResidual, kAligned>(branch, row, column); },
        [&](std::int64_t column, const auto& operands) {
          Vec16<T> vec = operands.of[0];
          if constexpr (kResidual)
            vec = bias_dropout_add_store<kAligned>(branch, row, philox_row, column, vec, operands.of[1]);
          const Floats<T> x = to_floats(vec);
#pragma unroll
          for (int i = 0; i < kVec<T>; ++i) sum += i < valid_at(column) ? x[i] : 0.0f;
        });
    const float mean = layer_norm ? reduce.sum(sum) / static_cast<float>(n) : 0.0f;

    const auto load_x = [&](std::int64_t column) -> Vecs<T, 1> {
      return {load_vec((kResidual ? branch.sum : branch.x) + row * branch.n + column, valid_at(column), kAligned)};
    };
    float squares = 0;
    for_each_vec<T, Mapping>(n, load_x, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const Floats<T> x = to_floats(vecs.of[0]);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) {
        const float centered = i < valid_at(column) ? x[i] - mean : 0.0f;
        squares += centered * centered;
      }
    });
    const float rstd = 1 / sqrtf(reduce.sum(squares) / static_cast<float>(n) + eps);

    for_each_vec<T, Mapping>(n, load_x, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
      const int valid = valid_at(column);
      Floats<T> x = to_floats(vecs.of[0]);
      const Floats<T> w = load_readonly(weight + column, valid, kAligned);
      const Floats<T> b = bias ? load_readonly(bias + column, valid, kAligned) : Floats<T>{};
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) x[i] = (x[i] - mean) * rstd * w[i] + b[i];
      store(normed + row * n + column, x, valid, kAligned);
    });
    if (thread_in_row<Mapping>() == 0) {
      if (layer_norm) mean_out[row] = mean;
      rstd_out[row] = rstd;
    }
  });
}

/// wdy = dy * weight, and x_hat = (x - mean) * rstd.
template <class T>
struct NormTerms {
  Floats<T> wdy, x_hat;
};
template <class T, class Mapping>
__device__ __forceinline__ NormTerms<T> norm_terms(Vec16<T> dy, Vec16<T> x, const T* weight, std::int64_t n,
                                                   std::int64_t column, float mean, float rstd) {
  NormTerms<T> out{to_floats(dy), to_floats(x)};
  const Floats<T> w = load_readonly(weight + column, valid_in_row<T, Mapping>(n, column), Mapping::kAligned);
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) {
    out.wdy[i] *= w[i];
    out.x_hat[i] = (out.x_hat[i] - mean) * rstd;
  }
  return out;
}
/// Adds wdy and wdy * x_hat, which are 0 past the end of the row.
template <class T>
__device__ __forceinline__ void add_terms(SumPair& sums, const NormTerms<T>& terms) {
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) {
    sums.first += terms.wdy[i];
    sums.second += terms.wdy[i] * terms.x_hat[i];
  }
}
/// dx, without the residual.
template <class T>
__device__ __forceinline__ Floats<T> norm_gradient(const NormTerms<T>& terms, float rstd, SumPair means) {
  Floats<T> dx;
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) dx[i] = rstd * (terms.wdy[i] - means.first - terms.x_hat[i] * means.second);
  return dx;
}

/// One warp per row of up to 4 KiB, else one block.
///
/// dx = rstd * (wdy - mean(wdy) - x_hat * mean(wdy * x_hat)) + residual, for rows that stay in registers. rms has no
/// mean(wdy), and row_mean is null. residual: may be null.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, (Mapping::kFull ? 3 : kDefaultMinBlocks)) // 80 or 128 registers a thread
    norm_backward_input_kept(T* dx, const T* dy, const T* x, const T* weight, const T* residual, const float* row_mean,
                             const float* row_rstd, std::int64_t rows, std::int64_t n) {
  constexpr int kVecs = Mapping::kVecsPerThread;
  const bool layer_norm = row_mean != nullptr;
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const RowVecs<T, Mapping> vecs(n);
    const float mean = layer_norm ? row_mean[row] : 0.0f, rstd = row_rstd[row];
    Vec16<T> kept_dy[kVecs]{}, kept_x[kVecs]{}, kept_residual[kVecs]{};
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      const std::int64_t offset = row * n + vecs.column(v);
      kept_dy[v] = load_vec(dy + offset);
      kept_x[v] = load_vec(x + offset);
      kept_residual[v] = residual ? load_vec(residual + offset) : Vec16<T>{};
    }
    SumPair sums;
#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      keep_packed(kept_dy[v]);
      keep_packed(kept_x[v]);
      keep_packed(kept_residual[v]);
      add_terms(sums, norm_terms<T, Mapping>(kept_dy[v], kept_x[v], weight, n, vecs.column(v), mean, rstd));
    }
    sums = reduce.sum(sums);
    const SumPair means{layer_norm ? sums.first / static_cast<float>(n) : 0.0f, sums.second / static_cast<float>(n)};

#pragma unroll
    for (int v = 0; v < kVecs; ++v) {
      if (!vecs.has(v)) continue;
      keep_packed(kept_dy[v]);
      keep_packed(kept_x[v]);
      keep_packed(kept_residual[v]);
      const std::int64_t column = vecs.column(v);
      Floats<T> out =
          norm_gradient(norm_terms<T, Mapping>(kept_dy[v], kept_x[v], weight, n, column, mean, rstd), rstd, means);
      if (residual) {
        const Floats<T> residual_values = to_floats(kept_residual[v]);
#pragma unroll
        for (int i = 0; i < kVec<T>; ++i) out[i] += residual_values[i];
      }
      store(dx + row * n + column, out, kVec<T>, true);
    }
  });
}

/// One warp per row of up to 4 KiB, else one block.
///
/// The same for rows that are read again in each pass; the residual is read in the last pass only.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    norm_backward_input_streamed(T* dx, const T* dy, const T* x, const T* weight, const T* residual,
                                 const float* row_mean, const float* row_rstd, std::int64_t rows, std::int64_t n) {
  constexpr bool kAligned = Mapping::kAligned;
  const bool layer_norm = row_mean != nullptr;
  RowReduce<Mapping::kThreadsPerRow> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const float mean = layer_norm ? row_mean[row] : 0.0f, rstd = row_rstd[row];
    const auto load = [&](std::int64_t column, bool with_residual) -> Vecs<T, 3> {
      const std::int64_t offset = row * n + column;
      const int valid = valid_in_row<T, Mapping>(n, column);
      return {load_vec(dy + offset, valid, kAligned), load_vec(x + offset, valid, kAligned),
              with_residual ? load_vec(residual + offset, valid, kAligned) : Vec16<T>{}};
    };
    const auto terms = [&](std::int64_t column, const Vecs<T, 3>& vecs) {
      return norm_terms<T, Mapping>(vecs.of[0], vecs.of[1], weight, n, column, mean, rstd);
    };

    SumPair sums;
    for_each_vec<T, Mapping>(
        n, [&](std::int64_t column) { return load(column, false); },
        [&](std::int64_t column, const Vecs<T, 3>& vecs) { add_terms(sums, terms(column, vecs)); });
    sums = reduce.sum(sums);
    const SumPair means{layer_norm ? sums.first / static_cast<float>(n) : 0.0f, sums.second / static_cast<float>(n)};

    for_each_vec<T, Mapping>(
        n, [&](std::int64_t column) { return load(column, residual != nullptr); },
        [&](std::int64_t column, const Vecs<T, 3>& vecs) {
          Floats<T> out = norm_gradient(terms(column, vecs), rstd, means);
          if (residual) {
            const Floats<T> residual_values = to_floats(vecs.of[2]);
#pragma unroll
            for (int i = 0; i < kVec<T>; ++i) out[i] += residual_values[i];
          }
          store(dx + row * n + column, out, valid_in_row<T, Mapping>(n, column), kAligned);
        });
  });
}

/// dispatch_row_mapping(), with separate kernels for widths of 768 and 1024 elements of 16 bits.
template <class T, class Body>
void dispatch_norm_mapping(std::int64_t n, bool aligned, Body body) {
  if constexpr (cuda::kHalf<T>) {
    const std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(T));
    if (aligned && bytes == FullRows<3>::kMaxBytes) return body(FullRows<3>{});
    if (aligned && bytes == FullRows<4>::kMaxBytes) return body(FullRows<4>{});
  }
  dispatch_row_mapping<T>(n, aligned, body);
}

template <class T, bool kResidual>
void launch_norm(Op op, const BiasDropoutAddRows<T>& branch, const NormFwd& args, bool aligned,
                 const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.x);
  dispatch_norm_mapping<T>(branch.n, aligned, [&]<class Mapping>(Mapping) {
    const auto launch = [&](auto* kernel) {
      launch_rows<Mapping>(op, context, rows, kernel, branch, args.y.as<T>(), args.weight.as<const T>(),
                           args.bias.as<const T>(), args.kind == NormKind::layer ? args.mean.as<float>() : nullptr,
                           args.rstd.as<float>(), rows, branch.n, static_cast<float>(args.eps));
    };
    if constexpr (Mapping::kVecsPerThread > 0) {
      launch(norm_forward_kept<T, Mapping, kResidual>);
    } else {
      launch(norm_forward_streamed<T, Mapping, kResidual>);
    }
  });
}

} // namespace

void FusedKernels::do_norm_fwd(const NormFwd& args, const OpContext& context) {
  const std::int64_t n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool aligned = aligned_rows<T>(n, {&args.y, &args.x, &args.weight, &args.bias});
    // No residual: only x of the branch is read.
    launch_norm<T, false>(Op::norm_fwd, {.x = args.x.as<const T>(), .n = n}, args, aligned, context);
  });
}

void FusedKernels::do_bias_dropout_add_norm(const BiasDropoutAddNorm& args, const OpContext& context) {
  const NormFwd norm{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps};
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const auto branch = bias_dropout_add_rows<T>({args.y, args.x, args.bias, args.residual, args.drop});
    const bool aligned =
        aligned_rows(branch, cuda::rows_of(args.x),
                     {&args.y, &args.normed, &args.x, &args.bias, &args.residual, &args.weight, &args.norm_bias});
    launch_norm<T, true>(Op::bias_dropout_add_norm, branch, norm, aligned, context);
  });
}

void FusedKernels::do_norm_bwd_input(const NormBwdInput& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.x), n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool aligned = aligned_rows<T>(n, {&args.dx, &args.dy, &args.x, &args.weight, &args.residual});
    dispatch_norm_mapping<T>(n, aligned, [&]<class Mapping>(Mapping) {
      const auto launch = [&](auto* kernel) {
        launch_rows<Mapping>(Op::norm_bwd_input, context, rows, kernel, args.dx.as<T>(), args.dy.as<const T>(),
                             args.x.as<const T>(), args.weight.as<const T>(), args.residual.as<const T>(),
                             args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
                             args.rstd.as<const float>(), rows, n);
      };
      if constexpr (Mapping::kVecsPerThread > 0) {
        launch(norm_backward_input_kept<T, Mapping>);
      } else {
        launch(norm_backward_input_streamed<T, Mapping>);
      }
    });
  });
}

} // namespace triax::kernels_fused
