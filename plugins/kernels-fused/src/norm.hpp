// Layer norm (Ba et al. 2016) and rms norm (Zhang & Sennrich 2019) in one pass over memory: a row lies in the registers
// of its team while mean and variance are found, each by a sum of its own, so that nothing cancels.
//
// Threads: launching is the rank's main thread's. Ownership: views of the caller. Blocking: never. Errors: as the
// launcher's.
#pragma once

#include "residual.hpp"

namespace triax::fused {

/// mean: null for rms.
template <class T, class Plan, class Source>
struct NormForward {
  Source source;
  T* y;
  const T *weight, *bias;
  float *mean, *rstd;
  std::int64_t n;
  float eps;
  bool packed;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    typename Team::template Each<Kept<T, Plan>> kept;
    typename Team::template Each<float> sum;
    team.lanes([&](unsigned lane) {
      float of_lane = 0;
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        const Values<T> x = source.first(row, at, live_of<T>(n, at));
        kept[lane].put(number, x);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) of_lane += x.at[i];
      });
      sum[lane] = of_lane;
    });
    const float center = mean ? team.all(sum, Plus{}) / static_cast<float>(n) : 0.0f;

    const auto row_of = [&](unsigned lane, int number, std::int64_t at, int live) {
      return kept[lane].get(number, [&] { return source.again(row, at, live); });
    };
    team.lanes([&](unsigned lane) {
      float of_lane = 0;
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        const int live = live_of<T>(n, at);
        const Values<T> x = row_of(lane, number, at, live);
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
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        const int live = live_of<T>(n, at);
        Values<T> x = row_of(lane, number, at, live);
        const Values<T> w = load(weight + at, live, packed);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) x.at[i] = (x.at[i] - center) * scale * w.at[i];
        if (bias) {
          const Values<T> b = load(bias + at, live, packed);
          TRIAX_UNROLL
          for (int i = 0; i < kPack<T>; ++i) x.at[i] += b.at[i];
        }
        store(y + row * n + at, x, live, packed);
      });
      if (lane != 0) return;
      if (mean) mean[row] = center;
      rstd[row] = scale;
    });
  }
};

/// With g = dy * weight and z the normalised x: dx = rstd * (g - mean(g) - z * mean(g z)); rms has no mean(g), and a
/// null mean_of. residual: may be null.
template <class T, class Plan>
struct NormBackwardInput {
  T* dx;
  const T *dy, *x, *weight, *residual;
  const float *mean_of, *rstd_of;
  std::int64_t n;
  bool packed;

  struct Terms {
    Values<T> g, z;
  };
  TRIAX_LANE Terms terms(std::int64_t row, std::int64_t at, int live, float mean, float rstd) const {
    Terms out{load(dy + row * n + at, live, packed), load(x + row * n + at, live, packed)};
    const Values<T> w = load(weight + at, live, packed);
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
    typename Team::template Each<Kept<T, Plan>> kept_g, kept_z;
    typename Team::template Each<float> sum_g, sum_gz;
    team.lanes([&](unsigned lane) {
      float of_g = 0, of_gz = 0;
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        const Terms here = terms(row, at, live_of<T>(n, at), mean, rstd);
        kept_g[lane].put(number, here.g);
        kept_z[lane].put(number, here.z);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) { // past the row's end g is 0
          of_g += here.g.at[i];
          of_gz += here.g.at[i] * here.z.at[i];
        }
      });
      sum_g[lane] = of_g;
      sum_gz[lane] = of_gz;
    });
    const float mean_g = mean_of ? team.all(sum_g, Plus{}) / static_cast<float>(n) : 0.0f;
    const float mean_gz = team.all(sum_gz, Plus{}) / static_cast<float>(n);
    team.lanes([&](unsigned lane) {
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        const int live = live_of<T>(n, at);
        const auto again = [&] { return terms(row, at, live, mean, rstd); };
        Values<T> g = kept_g[lane].get(number, [&] { return again().g; });
        const Values<T> z = kept_z[lane].get(number, [&] { return again().z; });
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) g.at[i] = rstd * (g.at[i] - mean_g - z.at[i] * mean_gz);
        const std::int64_t place = row * n + at;
        if (residual) {
          const Values<T> more = load(residual + place, live, packed);
          TRIAX_UNROLL
          for (int i = 0; i < kPack<T>; ++i) g.at[i] += more.at[i];
        }
        store(dx + place, g, live, packed);
      });
    });
  }
};

template <class T, class Source, class Launcher>
void norm_of(const Source& source, const NormFwd& args, bool packed, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1);
  float* mean = args.kind == NormKind::layer ? args.mean.as<float>() : nullptr;
  by_row_plan(n, [&]<class Plan>(Plan) {
    const NormForward<T, Plan, Source> body{source,
                                            args.y.as<T>(),
                                            args.weight.as<const T>(),
                                            args.bias.as<const T>(),
                                            mean,
                                            args.rstd.as<float>(),
                                            n,
                                            static_cast<float>(args.eps),
                                            packed};
    launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.x));
  });
}

template <class Launcher>
void norm_fwd(const NormFwd& args, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool packed = packed_rows<T>(n, {&args.y, &args.x, &args.weight, &args.bias});
    norm_of<T>(Plain<T>{args.x.as<const T>(), n, packed}, args, packed, launcher);
  });
}

template <class Launcher>
void bias_dropout_add_norm(const BiasDropoutAddNorm& args, const Launcher& launcher) {
  const BiasDropoutAdd add{args.y, args.x, args.bias, args.residual, args.drop};
  const NormFwd norm{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps};
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool packed = packed_rows<T>(
        args.x.size(-1), {&args.y, &args.normed, &args.x, &args.bias, &args.residual, &args.weight, &args.norm_bias});
    norm_of<T>(added<T>(add, packed), norm, packed, launcher);
  });
}

template <class Launcher>
void norm_bwd_input(const NormBwdInput& args, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const bool packed = packed_rows<T>(n, {&args.dx, &args.dy, &args.x, &args.weight, &args.residual});
    by_row_plan(n, [&]<class Plan>(Plan) {
      const NormBackwardInput<T, Plan> body{args.dx.as<T>(),
                                            args.dy.as<const T>(),
                                            args.x.as<const T>(),
                                            args.weight.as<const T>(),
                                            args.residual.as<const T>(),
                                            args.kind == NormKind::layer ? args.mean.as<const float>() : nullptr,
                                            args.rstd.as<const float>(),
                                            n,
                                            packed};
      launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.x));
    });
  });
}

} // namespace triax::fused
