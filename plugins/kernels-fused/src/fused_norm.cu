// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019), reading memory once: threads keep their row in
// registers while they compute mean and variance. These are separate sums, to avoid cancellation.
//
// core/cuda/src/primitives/norm.cu is the same computation, element by element. The gradients of weight and bias are in
// column_sums.cu.
#include "bias_dropout_add.cuh"
#include "fused_kernels.hpp"

namespace triax::kernels_fused {

namespace {

/// Rows x [rows, n] as the input of a norm, like ResidualRows, with nothing to add or to store.
template <class T>
struct PlainRows {
  static constexpr int kLoaded = 1, kInFlight = 8, kMinBlocks = 4; // 64 registers a thread
  const T* x;
  std::int64_t n;

  struct Row {};
  template <class Mapping>
  __device__ __forceinline__ Row begin_row(std::int64_t) const {
    return {};
  }
  template <class Mapping>
  __device__ __forceinline__ Vecs<T, kLoaded> load(std::int64_t row, std::int64_t column) const {
    return reload<Mapping>(row, column);
  }
  template <class Mapping>
  __device__ __forceinline__ Vecs<T, 1> compute_and_store_y(std::int64_t, Row, std::int64_t,
                                                            const Vecs<T, kLoaded>& loaded) const {
    return loaded;
  }
  template <class Mapping>
  __device__ __forceinline__ Vecs<T, 1> reload(std::int64_t row, std::int64_t column) const {
    return {load_vec(x + row * n + column, valid_in_row<T, Mapping>(n, column), Mapping::kAligned)};
  }
};

/// Whether a thread keeps its elements in f32: at most 32 registers, and with a residual only in full rows, whose code
/// needs fewer registers.
template <class T, class Mapping, class Input>
constexpr bool kKeepsFloats = Mapping::kVecs > 0 && Mapping::kVecs * sizeof(Floats<T>) <= 32 * sizeof(float) &&
                              (Mapping::kFull || Input::kLoaded == 1);

/// A thread's elements of a row: x, then x - mean. With kFloats in f32, so they are converted once; else in the type of
/// memory, or not kept.
template <class T, class Mapping, bool kFloats>
class CenteredRow {
 public:
  __device__ __forceinline__ void put(int number, const Vecs<T, 1>& vecs) {
    if constexpr (kFloats) {
      floats_[number] = to_floats(vecs.of[0]);
    } else {
      vecs_.put(number, vecs);
    }
  }
  /// use(column, x - mean) for each vector of the thread, in order. Call it once; load(column) reads x again.
  template <class Load, class Use>
  __device__ __forceinline__ void center(std::int64_t n, float mean, Load load, Use use) {
    if constexpr (kFloats) {
      for_each_kept(n, [&](std::int64_t column, Floats<T>& x) { use(column, subtract(x, mean)); });
    } else {
      for_each(n, mean, load, use);
    }
  }
  /// The same, after center().
  template <class Load, class Use>
  __device__ __forceinline__ void for_each(std::int64_t n, float mean, Load load, Use use) {
    if constexpr (kFloats) {
      for_each_kept(n, use);
    } else {
      vecs_.for_each(n, load, [&](std::int64_t column, const Vecs<T, 1>& vecs) {
        Floats<T> x = to_floats(vecs.of[0]);
        use(column, subtract(x, mean));
      });
    }
  }

 private:
  static __device__ __forceinline__ Floats<T>& subtract(Floats<T>& x, float mean) {
#pragma unroll
    for (int i = 0; i < kVec<T>; ++i) x[i] -= mean;
    return x;
  }
  template <class Use>
  __device__ __forceinline__ void for_each_kept(std::int64_t n, Use use) {
    const std::int64_t first = static_cast<std::int64_t>(thread_of_row<Mapping>()) * kVec<T>;
    const auto left = in_32_bits<Mapping>(n - first);
#pragma unroll
    for (int number = 0; number < Mapping::kVecs; ++number) {
      if (Mapping::kFull || number * kVecStride<T, Mapping> < left)
        use(first + number * kVecStride<T, Mapping>, floats_[number]);
    }
  }

  Floats<T> floats_[kFloats ? Mapping::kVecs : 1];
  RowRegisters<T, Mapping> vecs_;
};

/// One warp or block per row.
/// y = (x - mean) * rstd * weight + bias, with the statistics of each row. mean_out: null for rms; bias: may be null.
/// Input: PlainRows, or ResidualRows, which lists its functions.
template <class T, class Mapping, class Input>
__global__ void __launch_bounds__(kBlockSize, (kKeepsFloats<T, Mapping, Input> ? Input::kMinBlocks : kMinBlocks))
    norm_forward(const __grid_constant__ Input input, T* y, const T* weight, const T* bias, float* mean_out,
                 float* rstd_out, std::int64_t rows, std::int64_t n, float eps) {
  RowReduce<Mapping::kThreads> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    CenteredRow<T, Mapping, kKeepsFloats<T, Mapping, Input>> x_of_row;
    const auto reload = [&](std::int64_t column) { return input.template reload<Mapping>(row, column); };

    const typename Input::Row row_state = input.template begin_row<Mapping>(row);
    float sum = 0;
    for_each_vec<T, Mapping, Input::kInFlight>(
        n, [&](std::int64_t column) { return input.template load<Mapping>(row, column); },
        [&](int number, std::int64_t column, const Vecs<T, Input::kLoaded>& loaded) {
          const Vecs<T, 1> vecs = input.template compute_and_store_y<Mapping>(row, row_state, column, loaded);
          x_of_row.put(number, vecs);
          const Floats<T> x = to_floats(vecs.of[0]);
#pragma unroll
          for (int i = 0; i < kVec<T>; ++i) sum += i < valid_in_row<T, Mapping>(n, column) ? x[i] : 0.0f;
        });
    const float mean = mean_out ? reduce.sum(sum) / static_cast<float>(n) : 0.0f;

    float squares = 0;
    x_of_row.center(n, mean, reload, [&](std::int64_t column, const Floats<T>& centered) {
      const int valid = valid_in_row<T, Mapping>(n, column);
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) {
        const float x = i < valid ? centered[i] : 0.0f;
        squares += x * x;
      }
    });
    const float rstd = 1 / sqrtf(reduce.sum(squares) / static_cast<float>(n) + eps);

    x_of_row.for_each(n, mean, reload, [&](std::int64_t column, const Floats<T>& centered) {
      const int valid = valid_in_row<T, Mapping>(n, column);
      const Floats<T> w = load_readonly(weight + column, valid, Mapping::kAligned);
      const Floats<T> b = bias ? load_readonly(bias + column, valid, Mapping::kAligned) : Floats<T>{};
      Floats<T> out;
#pragma unroll
      for (int i = 0; i < kVec<T>; ++i) out[i] = centered[i] * rstd * w[i] + b[i];
      store(y + row * n + column, out, valid, Mapping::kAligned);
    });
    if (thread_of_row<Mapping>() == 0) {
      if (mean_out) mean_out[row] = mean;
      rstd_out[row] = rstd;
    }
  });
}

/// g = dy * weight, and z = (x - mean) * rstd.
template <class T>
struct NormTerms {
  Floats<T> g, z;
};
template <class T, class Mapping>
__device__ __forceinline__ NormTerms<T> norm_terms(Vec16<T> dy, Vec16<T> x, const T* weight, std::int64_t n,
                                                   std::int64_t column, float mean, float rstd) {
  NormTerms<T> out{to_floats(dy), to_floats(x)};
  const Floats<T> w = load_readonly(weight + column, valid_in_row<T, Mapping>(n, column), Mapping::kAligned);
#pragma unroll
  for (int i = 0; i < kVec<T>; ++i) {
    out.g[i] *= w[i];
    out.z[i] = (out.z[i] - mean) * rstd;
  }
  return out;
}

/// One warp or block per row.
/// dx = rstd * (g - mean(g) - z * mean(g z)) + residual. rms has no mean(g), and row_mean is null. residual: may be
/// null.
template <class T, class Mapping>
__global__ void __launch_bounds__(kBlockSize, (Mapping::kFull ? 3 : kMinBlocks)) // 80 or 128 registers a thread
    norm_backward_input(T* dx, const T* dy, const T* x, const T* weight, const T* residual, const float* row_mean,
                        const float* row_rstd, std::int64_t rows, std::int64_t n) {
  RowReduce<Mapping::kThreads> reduce;
  for_each_row<Mapping>(rows, [&](std::int64_t row) {
    const float mean = row_mean ? row_mean[row] : 0.0f, rstd = row_rstd[row];
    // dy, x and the residual. If the row is read several times, the residual is read the last time only.
    const auto load = [&](std::int64_t column, bool last) -> Vecs<T, 3> {
      const std::int64_t offset = row * n + column;
      const int valid = valid_in_row<T, Mapping>(n, column);
      const bool more = residual && (last || Mapping::kVecs > 0);
      return {load_vec(dy + offset, valid, Mapping::kAligned), load_vec(x + offset, valid, Mapping::kAligned),
              more ? load_vec(residual + offset, valid, Mapping::kAligned) : Vec16<T>{}};
    };
    const auto terms = [&](const Vecs<T, 3>& vecs, std::int64_t column) {
      return norm_terms<T, Mapping>(vecs.of[0], vecs.of[1], weight, n, column, mean, rstd);
    };

    RowRegisters<T, Mapping, 3> of_row;
    SumPair sums; // of g, of g z
    for_each_vec<T, Mapping>(
        n, [&](std::int64_t column) { return load(column, false); },
        [&](int number, std::int64_t column, const Vecs<T, 3>& vecs) {
          of_row.put(number, vecs);
          const NormTerms<T> term = terms(vecs, column);
#pragma unroll
          for (int i = 0; i < kVec<T>; ++i) { // g is 0 past the end of the row
            sums.first += term.g[i];
            sums.second += term.g[i] * term.z[i];
          }
        });
    sums = reduce.sum(sums);
    const float mean_g = row_mean ? sums.first / static_cast<float>(n) : 0.0f;
    const float mean_gz = sums.second / static_cast<float>(n);

    of_row.for_each(
        n, [&](std::int64_t column) { return load(column, true); },
        [&](std::int64_t column, const Vecs<T, 3>& vecs) {
          const NormTerms<T> term = terms(vecs, column);
          Floats<T> out;
#pragma unroll
          for (int i = 0; i < kVec<T>; ++i) out[i] = rstd * (term.g[i] - mean_g - term.z[i] * mean_gz);
          if (residual) {
            const Floats<T> more = to_floats(vecs.of[2]);
#pragma unroll
            for (int i = 0; i < kVec<T>; ++i) out[i] += more[i];
          }
          store(dx + row * n + column, out, valid_in_row<T, Mapping>(n, column), Mapping::kAligned);
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

template <class T, class Input>
void launch_norm(Op op, const Input& input, const NormFwd& args, bool aligned, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.x), n = args.x.size(-1);
  dispatch_norm_mapping<T>(n, aligned, [&]<class Mapping>(Mapping) {
    launch_rows<Mapping>(op, context, rows, norm_forward<T, Mapping, Input>, input, args.y.as<T>(),
                         args.weight.as<const T>(), args.bias.as<const T>(),
                         args.kind == NormKind::layer ? args.mean.as<float>() : nullptr, args.rstd.as<float>(), rows, n,
                         static_cast<float>(args.eps));
  });
}

} // namespace

void FusedKernels::do_norm_fwd(const NormFwd& args, const OpContext& context) {
  const std::int64_t n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool aligned = aligned_rows<T>(n, {&args.y, &args.x, &args.weight, &args.bias});
    launch_norm<T>(Op::norm_fwd, PlainRows<T>{args.x.as<const T>(), n}, args, aligned, context);
  });
}

void FusedKernels::do_bias_dropout_add_norm(const BiasDropoutAddNorm& args, const OpContext& context) {
  const NormFwd norm{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps};
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const auto input = residual_rows<T>({args.y, args.x, args.bias, args.residual, args.drop});
    const bool aligned =
        aligned_rows(input, cuda::rows_of(args.x),
                     {&args.y, &args.normed, &args.x, &args.bias, &args.residual, &args.weight, &args.norm_bias});
    launch_norm<T>(Op::bias_dropout_add_norm, input, norm, aligned, context);
  });
}

void FusedKernels::do_norm_bwd_input(const NormBwdInput& args, const OpContext& context) {
  const std::int64_t rows = cuda::rows_of(args.x), n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool aligned = aligned_rows<T>(n, {&args.dx, &args.dy, &args.x, &args.weight, &args.residual});
    dispatch_norm_mapping<T>(n, aligned, [&]<class Mapping>(Mapping) {
      launch_rows<Mapping>(
          Op::norm_bwd_input, context, rows, norm_backward_input<T, Mapping>, args.dx.as<T>(), args.dy.as<const T>(),
          args.x.as<const T>(), args.weight.as<const T>(), args.residual.as<const T>(),
          args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr, args.rstd.as<const float>(), rows, n);
    });
  });
}

} // namespace triax::kernels_fused
