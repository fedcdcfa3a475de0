// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov & Hutter, ICLR'19) on many shards in one launch.
#include "adamw_table.hpp"
#include "fused_kernels.hpp"
#include "triax/cuda/launching.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

namespace {

struct BiasCorrections {
  float first, second; // 1 - beta^step
};

/// Stores p to `working`, of type W.
template <bool kWhole, class W>
__device__ __forceinline__ void store_working(void* working, std::int64_t element, const Floats<float>& p, int valid) {
  W* to = static_cast<W*>(working) + element;
  if constexpr (kWhole && cuda::kHalf<W>) {
    const std::uint32_t words[2] = {pair_from_floats<W>(p[0], p[1]), pair_from_floats<W>(p[2], p[3])};
    store_words(to, words);
  } else if constexpr (kWhole) {
    store(to, p, valid, kWhole);
  } else {
    for (int i = 0; i < valid; ++i) to[i] = from_float<W>(p[i]);
  }
}

/// Updates the vector at element `element` of a shard. kWhole: all of its elements are valid and aligned.
template <bool kWhole>
__device__ __forceinline__ void update_vec(const AdamWTable& table, const AdamWShard& shard, std::int64_t element,
                                           const StepScalars& scalars, BiasCorrections correction) {
  const auto beta1 = static_cast<float>(table.beta1), beta2 = static_cast<float>(table.beta2);
  const auto one_minus_beta1 = static_cast<float>(1 - table.beta1),
             one_minus_beta2 = static_cast<float>(1 - table.beta2);
  const int valid = valid_elements<float>(shard.count, element);
  Floats<float> p = load<float>(shard.p + element, valid, kWhole);
  Floats<float> m = load<float>(shard.m + element, valid, kWhole);
  Floats<float> v = load<float>(shard.v + element, valid, kWhole);
  const Floats<float> gradient = load(shard.gradient + element, valid, kWhole);
#pragma unroll
  for (int i = 0; i < kVec<float>; ++i) {
    const float g = gradient[i] * scalars.clip;
    m[i] = beta1 * m[i] + one_minus_beta1 * g;
    v[i] = beta2 * v[i] + one_minus_beta2 * g * g;
    const float update = m[i] / correction.first / (sqrtf(v[i] / correction.second) + table.eps);
    p[i] -= scalars.lr * (update + shard.decay * p[i]);
  }
  store(shard.p + element, p, valid, kWhole);
  store(shard.m + element, m, valid, kWhole);
  store(shard.v + element, v, valid, kWhole);
  if (!shard.working) return;
  if (shard.working_type == DType::bf16) {
    store_working<kWhole, Bf16>(shard.working, element, p, valid);
  } else if (shard.working_type == DType::f16) {
    store_working<kWhole, F16>(shard.working, element, p, valid);
  } else {
    store_working<kWhole, float>(shard.working, element, p, valid);
  }
}

/// One block per part of a shard, one thread per vector of 16 bytes.
///
/// __grid_constant__: else indexing the table would copy it to local memory.
__global__ void __launch_bounds__(kBlockSize, kDefaultMinBlocks)
    step_adamw(const __grid_constant__ AdamWTable table, std::int64_t parts) {
  __shared__ BiasCorrections correction;
  const StepScalars scalars = *table.scalars;
  if (scalars.skip != 0) return;
  if (threadIdx.x == 0) {
    const auto steps = static_cast<double>(scalars.step);
    correction = {static_cast<float>(1 - pow(table.beta1, steps)), static_cast<float>(1 - pow(table.beta2, steps))};
  }
  __syncthreads();
  for (std::int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
    const int shard_index = table.shard_of(part);
    const AdamWShard& shard = table.shards[shard_index];
    const std::int64_t begin = (part - table.first_part[shard_index]) * AdamWTable::kPartLength;
    const std::int64_t end =
        begin + AdamWTable::kPartLength < shard.count ? begin + AdamWTable::kPartLength : shard.count;
    for (std::int64_t element = begin + threadIdx.x * kVec<float>; element < end; element += kBlockSize * kVec<float>) {
      if (shard.aligned && valid_elements<float>(shard.count, element) == kVec<float>) {
        update_vec<true>(table, shard, element, scalars, correction);
      } else {
        update_vec<false>(table, shard, element, scalars, correction);
      }
    }
  }
}
static_assert(sizeof(AdamWTable) + sizeof(std::int64_t) <= 4096); // limit of kernel parameters on all GPUs

bool aligned_shard(const AdamW& args) {
  return aligned_views({&args.master, &args.gradient, &args.m, &args.v, &args.working});
}

void launch_adamw(Op op, std::span<const AdamW> shards, const OpContext& context) {
  while (!shards.empty()) {
    const AdamW& first = shards.front();
    if (!first.scalars)
      throw Error(text("{}: the scalars of the step are missing", name_of(op)), {}, "set `scalars` of its arguments");
    AdamWTable table(first);
    shards = shards.subspan(table.add_group(shards, aligned_shard));
    if (table.parts() == 0) continue;
    const cuda::Launch launch(op, cuda::grid_of_blocks(table.parts()), context);
    launch(step_adamw, table, table.parts());
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
