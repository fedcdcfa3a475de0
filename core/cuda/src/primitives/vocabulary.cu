// SPDX-License-Identifier: Apache-2.0
// The embedding, and cross-entropy over a range of the vocabulary's columns.
#include <cmath>

#include "block.cuh"
#include "internal.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

/// One thread per element, in a grid-stride loop.
template <class T>
__global__ void embedding_forward(T* y, const T* table, const std::int32_t* tokens, std::int64_t begin,
                                  std::int64_t valid, std::int64_t h, std::int64_t count) {
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first; i < count; i += stride.step) {
    const std::int64_t row = tokens[i / h] - begin;
    y[i] = row < 0 || row >= valid ? rounded<T>(0.0f) : table[row * h + i % h];
  }
}

/// One block per position and kBlockSize columns of that token's row of dtable. For a repeated token, the block
/// of its first occurrence adds all occurrences in order, so the summation order is fixed and no two blocks write the
/// same element.
template <class To, class T>
__global__ void add_rows(To* dtable, const T* dy, const std::int32_t* tokens, std::int64_t begin, std::int64_t valid,
                         std::int64_t h, std::int64_t positions) {
  constexpr unsigned kWarps = kBlockSize / kWarpSize;
  __shared__ unsigned found[kWarps]; // a bit for each of the next kBlockSize positions
  const std::int64_t tiles = ceil_div(h, kBlockSize);
  for (std::int64_t item = blockIdx.x; item < positions * tiles; item += gridDim.x) {
    const std::int64_t position = item / tiles, column = item % tiles * kBlockSize + threadIdx.x;
    const std::int32_t token = tokens[position];
    const std::int64_t row = token - begin;
    if (row < 0 || row >= valid) continue;
    bool before = false;
    for (std::int64_t other = threadIdx.x; other < position && !before; other += kBlockSize)
      before = tokens[other] == token;
    if (__syncthreads_or(before)) continue;

    float sum = column < h ? value_of(dtable[row * h + column]) : 0.0f;
    for (std::int64_t from = position; from < positions; from += kBlockSize) {
      const std::int64_t other = from + threadIdx.x;
      const unsigned here = __ballot_sync(kFullMask, other < positions && tokens[other] == token);
      __syncthreads(); // found is still being read
      if (threadIdx.x % kWarpSize == 0) found[threadIdx.x / kWarpSize] = here;
      __syncthreads();
      for (unsigned warp = 0; warp < kWarps; ++warp) {
        for (unsigned bits = found[warp]; bits != 0; bits &= bits - 1) {
          const std::int64_t at = from + warp * kWarpSize + static_cast<unsigned>(__ffs(static_cast<int>(bits)) - 1);
          if (column < h) sum += value_of(dy[at * h + column]);
        }
      }
    }
    if (column < h) dtable[row * h + column] = rounded<To>(sum);
  }
}

/// One block per row.
template <class T>
__global__ void largest_logit(float* row_max, const T* logits, std::int64_t rows, std::int64_t columns,
                              std::int64_t valid) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float max = -INFINITY; // stays so if the range is all padding
    for (std::int64_t j = threadIdx.x; j < valid; j += blockDim.x)
      max = fmaxf(max, value_of(logits[row * columns + j]));
    max = block_max(max);
    if (threadIdx.x == 0) row_max[row] = max;
  }
}

/// The column of a row's target in this range, or -1.
__device__ std::int64_t target_column(const std::int32_t* targets, std::int64_t row, std::int64_t begin,
                                      std::int64_t valid) {
  const std::int64_t column = targets[row] - begin;
  return column >= 0 && column < valid ? column : -1;
}

/// One block per row.
template <class T>
__global__ void sum_exponentials(float* row_sum, float* row_target, const T* logits, const float* row_max,
                                 const std::int32_t* targets, std::int64_t rows, std::int64_t columns,
                                 std::int64_t begin, std::int64_t valid) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* x = logits + row * columns;
    const float max = row_max[row];
    float sum = 0;
    for (std::int64_t j = threadIdx.x; j < valid; j += blockDim.x) sum += expf(value_of(x[j]) - max);
    sum = block_sum(sum);
    if (threadIdx.x != 0) continue;
    const std::int64_t target = target_column(targets, row, begin, valid);
    row_sum[row] = sum;
    row_target[row] = target < 0 ? 0.0f : value_of(x[target]) - max;
  }
}

/// One block per sample: the threads compute kBlockSize terms in parallel; thread 0 adds them in row order. Rows are
/// [positions, samples].
__global__ void sum_losses(double* loss_out, const float* row_sum, const float* row_target, std::int64_t rows,
                           std::int64_t samples) {
  __shared__ double terms[kBlockSize];
  for (std::int64_t sample = blockIdx.x; sample < samples; sample += gridDim.x) {
    const std::int64_t positions = rows / samples;
    double loss = 0;
    for (std::int64_t from = 0; from < positions; from += kBlockSize) {
      const std::int64_t position = from + threadIdx.x, row = position * samples + sample;
      __syncthreads(); // the terms before may still be read
      if (position < positions)
        terms[threadIdx.x] = log(static_cast<double>(row_sum[row])) - static_cast<double>(row_target[row]);
      __syncthreads();
      if (threadIdx.x != 0) continue;
      for (std::int64_t i = 0; i < kBlockSize && from + i < positions; ++i) loss += terms[i];
    }
    if (threadIdx.x == 0) loss_out[sample] = loss;
  }
}

/// One block per row.
template <class T>
__global__ void logits_to_gradient(T* logits, const float* row_max, const float* row_sum, const std::int32_t* targets,
                                   const StepScalars* scalars, std::int64_t rows, std::int64_t columns,
                                   std::int64_t begin, std::int64_t valid, double given_scale) {
  const auto scale = static_cast<float>(given_scale * (scalars ? static_cast<double>(scalars->loss_scale) : 1.0));
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    T* x = logits + row * columns;
    const float max = row_max[row], sum = row_sum[row];
    const std::int64_t target = target_column(targets, row, begin, valid);
    for (std::int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
      const float gradient =
          j < valid ? (expf(value_of(x[j]) - max) / sum - (j == target ? 1.0f : 0.0f)) * scale : 0.0f;
      x[j] = rounded<T>(gradient);
    }
  }
}

} // namespace

void Primitives::do_embed_fwd(const EmbedFwd& args, const OpContext& context) {
  over_elements(Op::embed_fwd, args.y, context, [&]<class T>(T, const Launch& launch, std::int64_t count) {
    launch(embedding_forward<T>, args.y.as<T>(), args.table.as<const T>(), args.tokens.as<const std::int32_t>(),
           args.begin, args.valid, args.y.size(-1), count);
  });
}

void Primitives::do_embed_bwd(const EmbedBwd& args, const OpContext& context) {
  const std::int64_t positions = rows_of(args.dy), h = args.dy.size(-1);
  if (positions == 0) return;
  const Launch launch(Op::embed_bwd, grid_of_blocks(positions * ceil_div(h, kBlockSize)), context);
  by_types(args.dy.dtype(), args.dtable.dtype(), [&]<class T, class To>(T, To) {
    launch(add_rows<To, T>, args.dtable.as<To>(), args.dy.as<const T>(), args.tokens.as<const std::int32_t>(),
           args.begin, args.valid, h, positions);
  });
}

void Primitives::do_xent_max(const XentMax& args, const OpContext& context) {
  over_rows(Op::xent_max, args.logits, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(largest_logit<T>, args.max.as<float>(), args.logits.as<const T>(), rows, args.logits.size(-1), args.valid);
  });
}

void Primitives::do_xent_sums(const XentSums& args, const OpContext& context) {
  over_rows(Op::xent_sums, args.logits, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(sum_exponentials<T>, args.sum_exp.as<float>(), args.target_logit.as<float>(), args.logits.as<const T>(),
           args.max.as<const float>(), args.targets.as<const std::int32_t>(), rows, args.logits.size(-1), args.begin,
           args.valid);
  });
}

void Primitives::do_xent_loss(const XentLoss& args, const OpContext& context) {
  const std::int64_t samples = args.loss.elements();
  if (samples == 0) return;
  const Launch launch(Op::xent_loss, grid_of_blocks(samples), context);
  launch(sum_losses, args.loss.as<double>(), args.sum_exp.as<const float>(), args.target_logit.as<const float>(),
         args.sum_exp.elements(), samples);
}

void Primitives::do_xent_bwd(const XentBwd& args, const OpContext& context) {
  over_rows(Op::xent_bwd, args.logits, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(logits_to_gradient<T>, args.logits.as<T>(), args.max.as<const float>(), args.sum_exp.as<const float>(),
           args.targets.as<const std::int32_t>(), args.scalars, rows, args.logits.size(-1), args.begin, args.valid,
           args.scale);
  });
}

} // namespace triax::cuda
