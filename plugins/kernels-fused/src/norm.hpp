// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019), reading memory once: a team keeps its row in
// registers while it computes mean and variance. These are separate sums, to avoid cancellation.
//
// Threads: the rank's main thread launches. Ownership: the caller's views. Blocking: never. Errors: those of the
// launcher.
#pragma once

#include "residual.hpp"

namespace triax::kernels_fused {

/// mean: null for rms.
template <class T, class Plan, class Source>
struct NormForward {
  Source source;
  T* y;
  const T *weight, *bias;
  float *mean, *rstd;
  std::int64_t n;
  float eps;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const typename Source::Row here = source.template begin<Plan>(row);
    typename Team::template Each<Kept<T, Plan>> kept;
    typename Team::template Each<float> sum;
    team.lanes([&](unsigned lane) {
      float of_lane = 0;
      walk<T, Plan, Source::kTogether>(
          lane, n, [&](std::int64_t at) { return source.template fetch<Plan>(row, at); },
          [&](int number, std::int64_t at, const auto& fetched) {
            const Packs<T, 1> made = source.template made<Plan>(row, here, at, fetched);
            kept[lane].put(number, made);
            const Values<T> x = widened(made.of[0]);
            TRIAX_UNROLL
            for (int i = 0; i < kPack<T>; ++i) of_lane += i < live_in_row<T, Plan>(n, at) ? x.at[i] : 0.0f;
          });
      sum[lane] = of_lane;
    });
    const float center = mean ? team.all(sum, Plus{}) / static_cast<float>(n) : 0.0f;

    const auto again = [&](std::int64_t at) { return source.template again<Plan>(row, at); };
    team.lanes([&](unsigned lane) {
      float of_lane = 0;
      kept[lane].walk_again(lane, n, again, [&](std::int64_t at, const Packs<T, 1>& packs) {
        const int live = live_in_row<T, Plan>(n, at);
        const Values<T> x = widened(packs.of[0]);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) {
          const float away = i < live ? x.at[i] - center : 0.0f;
          of_lane += away * away;
        }
      });
      sum[lane] = of_lane;
    });
    const float scale = 1 / sqrtf(team.all(sum, Plus{}) / static_cast<float>(n) + eps);

    team.lanes([&](unsigned lane) {
      kept[lane].walk_again(lane, n, again, [&](std::int64_t at, const Packs<T, 1>& packs) {
        const int live = live_in_row<T, Plan>(n, at);
        Values<T> x = widened(packs.of[0]);
        const Values<T> w = load_fixed(weight + at, live, Plan::kPacked);
        const Values<T> b = bias ? load_fixed(bias + at, live, Plan::kPacked) : Values<T>{};
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) x.at[i] = (x.at[i] - center) * scale * w.at[i] + b.at[i];
        store(y + row * n + at, x, live, Plan::kPacked);
      });
      if (lane != 0) return;
      if (mean) mean[row] = center;
      rstd[row] = scale;
    });
  }
};

/// With g = dy * weight and z the normalized x: dx = rstd * (g - mean(g) - z * mean(g z)). rms has no mean(g), and
/// mean_of is null. residual: may be null.
template <class T, class Plan>
struct NormBackwardInput {
  T* dx;
  const T *dy, *x, *weight, *residual;
  const float *mean_of, *rstd_of;
  std::int64_t n;

  /// dy, x and the residual at one position. If the row is read several times, the residual is only read the last time.
  TRIAX_LANE Packs<T, 3> fetch(std::int64_t row, std::int64_t at, bool last) const {
    const std::int64_t place = row * n + at;
    const int live = live_in_row<T, Plan>(n, at);
    const bool more = residual && (last || Plan::kPacks > 0);
    return {read(dy + place, live, Plan::kPacked), read(x + place, live, Plan::kPacked),
            more ? read(residual + place, live, Plan::kPacked) : Pack<T>{}};
  }

  struct Terms {
    Values<T> g, z;
  };
  TRIAX_LANE Terms terms(const Packs<T, 3>& packs, std::int64_t at, float mean, float rstd) const {
    Terms out{widened(packs.of[0]), widened(packs.of[1])};
    const Values<T> w = load_fixed(weight + at, live_in_row<T, Plan>(n, at), Plan::kPacked);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) {
      out.g.at[i] *= w.at[i];
      out.z.at[i] = (out.z.at[i] - mean) * rstd;
    }
    return out;
  }

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const float mean = mean_of ? mean_of[row] : 0.0f, rstd = rstd_of[row];
    typename Team::template Each<Kept<T, Plan, 3>> kept;
    typename Team::template Each<TwoSums> sums; // of g, of g z
    team.lanes([&](unsigned lane) {
      TwoSums of_lane{};
      walk<T, Plan>(
          lane, n, [&](std::int64_t at) { return fetch(row, at, false); },
          [&](int number, std::int64_t at, const Packs<T, 3>& packs) {
            kept[lane].put(number, packs);
            const Terms here = terms(packs, at, mean, rstd);
            TRIAX_UNROLL
            for (int i = 0; i < kPack<T>; ++i) { // g is 0 past the end of the row
              of_lane.one += here.g.at[i];
              of_lane.two += here.g.at[i] * here.z.at[i];
            }
          });
      sums[lane] = of_lane;
    });
    const TwoSums all = team.all(sums, Plus{});
    const float mean_g = mean_of ? all.one / static_cast<float>(n) : 0.0f, mean_gz = all.two / static_cast<float>(n);
    team.lanes([&](unsigned lane) {
      kept[lane].walk_again(
          lane, n, [&](std::int64_t at) { return fetch(row, at, true); },
          [&](std::int64_t at, const Packs<T, 3>& packs) {
            const Terms here = terms(packs, at, mean, rstd);
            Values<T> out;
            TRIAX_UNROLL
            for (int i = 0; i < kPack<T>; ++i) out.at[i] = rstd * (here.g.at[i] - mean_g - here.z.at[i] * mean_gz);
            if (residual) {
              const Values<T> more = widened(packs.of[2]);
              TRIAX_UNROLL
              for (int i = 0; i < kPack<T>; ++i) out.at[i] += more.at[i];
            }
            store(dx + row * n + at, out, live_in_row<T, Plan>(n, at), Plan::kPacked);
          });
    });
  }
};

template <class T, class Source, class Launcher>
void norm_of(const Source& source, const NormFwd& args, bool packed, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1);
  float* mean = args.kind == NormKind::layer ? args.mean.as<float>() : nullptr;
  by_row_plan<T>(n, packed, [&]<class Plan>(Plan) {
    const NormForward<T, Plan, Source> body{source,
                                            args.y.as<T>(),
                                            args.weight.as<const T>(),
                                            args.bias.as<const T>(),
                                            mean,
                                            args.rstd.as<float>(),
                                            n,
                                            static_cast<float>(args.eps)};
    launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.x));
  });
}

template <class Launcher>
void norm_fwd(const NormFwd& args, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool packed = packed_rows<T>(n, {&args.y, &args.x, &args.weight, &args.bias});
    norm_of<T>(Plain<T>{args.x.as<const T>(), n}, args, packed, launcher);
  });
}

template <class Launcher>
void bias_dropout_add_norm(const BiasDropoutAddNorm& args, const Launcher& launcher) {
  const BiasDropoutAdd add{args.y, args.x, args.bias, args.residual, args.drop};
  const NormFwd norm{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps};
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const Added<T> source = added<T>(add);
    const bool packed =
        packed_sums(source, cuda::rows_of(args.x),
                    {&args.y, &args.normed, &args.x, &args.bias, &args.residual, &args.weight, &args.norm_bias});
    norm_of<T>(source, norm, packed, launcher);
  });
}

template <class Launcher>
void norm_bwd_input(const NormBwdInput& args, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool packed = packed_rows<T>(n, {&args.dx, &args.dy, &args.x, &args.weight, &args.residual});
    by_row_plan<T>(n, packed, [&]<class Plan>(Plan) {
      const NormBackwardInput<T, Plan> body{args.dx.as<T>(),
                                            args.dy.as<const T>(),
                                            args.x.as<const T>(),
                                            args.weight.as<const T>(),
                                            args.residual.as<const T>(),
                                            args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
                                            args.rstd.as<const float>(),
                                            n};
      launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.x));
    });
  });
}

} // namespace triax::kernels_fused
