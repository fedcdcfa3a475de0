// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov & Hutter, ICLR'19) on many shards in one launch.
#include "adamw_table.hpp"
#include "kernels.hpp"
#include "reduce.cuh"
#include "triax/cuda/launching.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

namespace {

struct BiasCorrections {
  float first, second; // 1 - beta^step
};

/// Stores p to `working`, of type W.
template <bool kWhole, class W>
__device__ __forceinline__ void store_working(void* working, std::int64_t at, const Floats<float>& p, int valid) {
  W* to = static_cast<W*>(working) + at;
  if constexpr (kWhole && cuda::kHalf<W>) {
    store_words(to, {pair_from_floats<W>(p.at[0], p.at[1]), pair_from_floats<W>(p.at[2], p.at[3])});
  } else if constexpr (kWhole) {
    store(to, p, valid, kWhole);
  } else {
    for (int i = 0; i < valid; ++i) to[i] = from_float<W>(p.at[i]);
  }
}

/// Updates the vector at element `at` of a shard. kWhole: all of its elements are valid and aligned.
template <bool kWhole>
__device__ __forceinline__ void update(const AdamWTable& table, const AdamWShard& shard, std::int64_t at,
                                       const StepScalars& scalars, BiasCorrections correction) {
  const auto beta1 = static_cast<float>(table.beta1), beta2 = static_cast<float>(table.beta2);
  const auto rest1 = static_cast<float>(1 - table.beta1), rest2 = static_cast<float>(1 - table.beta2);
  const int valid = valid_elements<float>(shard.count, at);
  Floats<float> p = load<float>(shard.p + at, valid, kWhole);
  Floats<float> m = load<float>(shard.m + at, valid, kWhole);
  Floats<float> v = load<float>(shard.v + at, valid, kWhole);
  const Floats<float> gradient = load(shard.gradient + at, valid, kWhole);
#pragma unroll
  for (int i = 0; i < kVec<float>; ++i) {
    const float g = gradient.at[i] * scalars.clip;
    m.at[i] = beta1 * m.at[i] + rest1 * g;
    v.at[i] = beta2 * v.at[i] + rest2 * g * g;
    const float update = m.at[i] / correction.first / (sqrtf(v.at[i] / correction.second) + table.eps);
    p.at[i] -= scalars.lr * (update + shard.decay * p.at[i]);
  }
  store(shard.p + at, p, valid, kWhole);
  store(shard.m + at, m, valid, kWhole);
  store(shard.v + at, v, valid, kWhole);
  if (!shard.working) return;
  if (shard.working_type == DType::bf16) {
    store_working<kWhole, Bf16>(shard.working, at, p, valid);
  } else if (shard.working_type == DType::f16) {
    store_working<kWhole, F16>(shard.working, at, p, valid);
  } else {
    store_working<kWhole, float>(shard.working, at, p, valid);
  }
}

__global__ void __launch_bounds__(kBlockSize, kMinBlocks)
    step_adamw(const __grid_constant__ AdamWTable table, std::int64_t chunks) {
  __shared__ BiasCorrections correction;
  const StepScalars scalars = *table.scalars;
  if (scalars.skip != 0) return;
  if (threadIdx.x == 0) {
    const auto steps = static_cast<double>(scalars.step);
    correction = {static_cast<float>(1 - pow(table.beta1, steps)), static_cast<float>(1 - pow(table.beta2, steps))};
  }
  __syncthreads();
  for (std::int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int number = table.shard_of(chunk);
    const AdamWShard& shard = table.shards[number];
    const std::int64_t begin = (chunk - table.first_chunk[number]) * AdamWTable::kChunk;
    const std::int64_t end = begin + AdamWTable::kChunk < shard.count ? begin + AdamWTable::kChunk : shard.count;
    for (std::int64_t at = begin + threadIdx.x * kVec<float>; at < end; at += kBlockSize * kVec<float>) {
      if (shard.aligned && valid_elements<float>(shard.count, at) == kVec<float>) {
        update<true>(table, shard, at, scalars, correction);
      } else {
        update<false>(table, shard, at, scalars, correction);
      }
    }
  }
}
static_assert(sizeof(AdamWTable) + sizeof(std::int64_t) <= 4096); // limit of kernel parameters on all GPUs

bool aligned_shard(const AdamW& args) {
  return aligned_rows<float>(kVec<float>, {&args.master, &args.gradient, &args.m, &args.v, &args.working});
}

void launch_adamw(Op op, std::span<const AdamW> shards, const OpContext& context) {
  std::size_t next = 0;
  while (next < shards.size()) {
    const AdamW& first = shards[next];
    if (!first.scalars) throw Error("adamw: the scalars of the step are missing");
    AdamWTable table(first);
    for (; next < shards.size() && table.count < AdamWTable::kMax && AdamWTable::same_factors(first, shards[next]);
         ++next)
      table.add(shards[next], aligned_shard(shards[next]));
    if (table.chunks() == 0) continue;
    const cuda::Launch launch(op, cuda::grid_of_rows(table.chunks()), context);
    launch(step_adamw, table, table.chunks());
  }
}

} // namespace

void FusedKernels::do_adamw(const AdamW& args, const OpContext& context) {
  launch_adamw(Op::adamw, std::span(&args, 1), context);
}
void FusedKernels::do_multi_adamw(const MultiAdamW& args, const OpContext& context) {
  launch_adamw(Op::multi_adamw, args.shards, context);
}

} // namespace triax::kernels_fused
