// SPDX-License-Identifier: Apache-2.0
// AdamW (Loshchilov & Hutter, ICLR'19) on many shards in one launch. The descriptions of the shards are kernel
// parameters, as many as fit: no allocation, copy or wait is needed. A team takes a chunk of one shard.
//
// Threads: the rank's main thread launches. Ownership: the caller's views. Blocking: never. Errors: Error for a step
// without scalars; those of the launcher.
#pragma once

#include <cstdint>

#include "packs.hpp"
#include "triax/cuda/types.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::kernels_fused {

struct AdamWShard {
  float *p, *m, *v;
  const float* gradient;
  void* working; // may be null
  std::int64_t count;
  float decay;
  DType working_type;
  bool aligned; // all f32 data and the working weights are at multiples of 16 bytes
};

/// Shards of one launch; they have the same factors.
struct AdamWTable {
  static constexpr int kMax = 48;
  static constexpr std::int64_t kChunk = 8192; // elements per team

  AdamWShard shards[kMax];
  std::int64_t first_chunk[kMax + 1]; // of each shard, and the end of the last
  int count = 0;
  double beta1, beta2;
  float eps;
  const StepScalars* scalars;

  std::int64_t chunks() const { return first_chunk[count]; }

  static bool same_factors(const AdamW& a, const AdamW& b) {
    return a.beta1 == b.beta1 && a.beta2 == b.beta2 && a.eps == b.eps && a.scalars == b.scalars;
  }

  void add(const AdamW& args) {
    const auto aligned =
        packed_rows<float>(kPack<float>, {&args.master, &args.gradient, &args.m, &args.v, &args.working});
    const std::int64_t elements = args.master.elements();
    shards[count] = {args.master.as<float>(),         args.m.as<float>(),   args.v.as<float>(),
                     args.gradient.as<const float>(), args.working.data(),  elements,
                     static_cast<float>(args.decay),  args.working.dtype(), aligned};
    first_chunk[count + 1] = first_chunk[count] + (elements + kChunk - 1) / kChunk;
    ++count;
  }
};

inline AdamWTable adamw_table(const AdamW& like) {
  AdamWTable table;
  table.first_chunk[0] = 0;
  table.beta1 = like.beta1;
  table.beta2 = like.beta2;
  table.eps = static_cast<float>(like.eps);
  table.scalars = like.scalars;
  return table;
}

struct StepAdamW {
  AdamWTable table;

  struct Corrections {
    float first, second;
  };

  /// The shard of a chunk: the last shard whose first chunk is not after it. Empty shards have no chunks.
  TRIAX_LANE int shard_of(std::int64_t chunk) const {
    int low = 0, high = table.count; // first_chunk[low] <= chunk < first_chunk[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (table.first_chunk[middle] <= chunk) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /// For four elements; kWhole: all are valid and aligned.
  template <bool kWhole, class W>
  TRIAX_LANE static void write_working(void* working, std::int64_t at, const Values<float>& p, int live) {
    W* to = static_cast<W*>(working) + at;
    if constexpr (kWhole && cuda::kHalf<W>) {
      put_words(to, {narrowed_pair<W>(p.at[0], p.at[1]), narrowed_pair<W>(p.at[2], p.at[3])});
    } else if constexpr (kWhole) {
      store(to, p, live, kWhole);
    } else {
      for (int i = 0; i < live; ++i) to[i] = narrowed<W>(p.at[i]);
    }
  }

  template <bool kWhole>
  TRIAX_LANE void step(const AdamWShard& shard, std::int64_t at, const StepScalars& now, Corrections correction) const {
    const auto beta1 = static_cast<float>(table.beta1), beta2 = static_cast<float>(table.beta2);
    const auto rest1 = static_cast<float>(1 - table.beta1), rest2 = static_cast<float>(1 - table.beta2);
    const int live = live_of<float>(shard.count, at);
    Values<float> p = load(static_cast<const float*>(shard.p) + at, live, kWhole);
    Values<float> m = load(static_cast<const float*>(shard.m) + at, live, kWhole);
    Values<float> v = load(static_cast<const float*>(shard.v) + at, live, kWhole);
    const Values<float> gradient = load(shard.gradient + at, live, kWhole);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<float>; ++i) {
      const float g = gradient.at[i] * now.clip;
      m.at[i] = beta1 * m.at[i] + rest1 * g;
      v.at[i] = beta2 * v.at[i] + rest2 * g * g;
      const float update = m.at[i] / correction.first / (sqrtf(v.at[i] / correction.second) + table.eps);
      p.at[i] -= now.lr * (update + shard.decay * p.at[i]);
    }
    store(shard.p + at, p, live, kWhole);
    store(shard.m + at, m, live, kWhole);
    store(shard.v + at, v, live, kWhole);
    if (!shard.working) return;
    if (shard.working_type == DType::bf16) {
      write_working<kWhole, Bf16>(shard.working, at, p, live);
    } else if (shard.working_type == DType::f16) {
      write_working<kWhole, F16>(shard.working, at, p, live);
    } else {
      write_working<kWhole, float>(shard.working, at, p, live);
    }
  }

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t chunk) const {
    const StepScalars now = *table.scalars;
    if (now.skip != 0) return;
    const Corrections correction = team.from_first([&] {
      const auto steps = static_cast<double>(now.step);
      return Corrections{static_cast<float>(1 - pow(table.beta1, steps)),
                         static_cast<float>(1 - pow(table.beta2, steps))};
    });
    const int number = shard_of(chunk);
    const AdamWShard& shard = table.shards[number];
    const std::int64_t begin = (chunk - table.first_chunk[number]) * AdamWTable::kChunk;
    const std::int64_t end = begin + AdamWTable::kChunk < shard.count ? begin + AdamWTable::kChunk : shard.count;
    team.lanes([&](unsigned lane) {
      for (std::int64_t at = begin + lane * kPack<float>; at < end; at += Team::kLanes * kPack<float>) {
        if (shard.aligned && live_of<float>(shard.count, at) == kPack<float>) {
          step<true>(shard, at, now, correction);
        } else {
          step<false>(shard, at, now, correction);
        }
      }
    });
  }
};
static_assert(sizeof(StepAdamW) + sizeof(std::int64_t) <= 4096); // limit of kernel parameters on all GPUs

template <class Launcher>
void multi_adamw(const MultiAdamW& args, const Launcher& launcher) {
  std::size_t next = 0;
  while (next < args.shards.size()) {
    const AdamW& first = args.shards[next];
    if (!first.scalars) throw Error("adamw: the scalars of the step are missing");
    StepAdamW body{adamw_table(first)};
    while (next < args.shards.size() && body.table.count < AdamWTable::kMax &&
           AdamWTable::same_factors(first, args.shards[next]))
      body.table.add(args.shards[next++]);
    launcher.template teams<kBlock>(body, body.table.chunks());
  }
}

} // namespace triax::kernels_fused
