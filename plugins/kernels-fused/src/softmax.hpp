// Softmax of attention scores with scale and mask, a row in the registers of its team. The keys that a mask hides are
// not read: a causal row costs what it sees, and writes its zeros.
//
// Threads: launching is the rank's main thread's. Ownership: views of the caller. Blocking: never. Errors: as the
// launcher's.
#pragma once

#include "rows.hpp"
#include "triax/cuda/mask.hpp"
#include "triax/cuda/types.hpp"

namespace triax::fused {

/// x, y [b, heads, queries, keys]; y may be x: a pack is written by the lane that read it last. lse may be null.
template <class T, class Plan>
struct SoftmaxForward {
  T* y;
  const T* x;
  float* lse;
  cuda::MaskPlan mask;
  std::int64_t heads, queries, keys;
  float scale;
  bool packed;

  /// Scaled scores.
  TRIAX_LANE Values<T> scores(std::int64_t row, std::int64_t at, int live) const {
    Values<T> out = load(x + row * keys + at, live, packed);
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) out.at[i] *= scale;
    return out;
  }

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const std::int64_t seen = cuda::seen_keys(mask, row / (heads * queries), row % queries, keys);
    typename Team::template Each<Kept<T, Plan>> kept;
    typename Team::template Each<float> of_lanes;
    team.lanes([&](unsigned lane) {
      float largest = -INFINITY;
      walk<T, Plan>(lane, seen, [&](int number, std::int64_t at) {
        const int live = live_of<T>(seen, at);
        const Values<T> x_here = scores(row, at, live);
        kept[lane].put(number, x_here);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) largest = i < live ? Larger{}(largest, x_here.at[i]) : largest;
      });
      of_lanes[lane] = largest;
    });
    const float max = team.all(of_lanes, Larger{});

    const auto exponentials = [&](unsigned lane, int number, std::int64_t at, int live) {
      Values<T> out = kept[lane].get(number, [&] { return scores(row, at, live); });
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) out.at[i] = i < live ? expf(out.at[i] - max) : 0.0f;
      return out;
    };
    team.lanes([&](unsigned lane) {
      float sum = 0;
      walk<T, Plan>(lane, seen, [&](int number, std::int64_t at) {
        const Values<T> e = exponentials(lane, number, at, live_of<T>(seen, at));
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) sum += e.at[i];
      });
      of_lanes[lane] = sum;
    });
    const float sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      walk<T, Plan>(lane, keys, [&](int number, std::int64_t at) {
        Values<T> out{};
        if (at < seen) {
          out = exponentials(lane, number, at, live_of<T>(seen, at));
          TRIAX_UNROLL
          for (int i = 0; i < kPack<T>; ++i) out.at[i] /= sum;
        }
        store(y + row * keys + at, out, live_of<T>(keys, at), packed);
      });
      if (lse && lane == 0) lse[row] = max + logf(sum); // -infinity where no key is seen
    });
  }
};

/// dx may be dy.
template <class T, class Plan>
struct SoftmaxBackward {
  T* dx;
  const T *dy, *y;
  std::int64_t n;
  float scale;
  bool packed;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    typename Team::template Each<Kept<T, Plan>> kept_dy, kept_y;
    typename Team::template Each<float> of_lanes;
    const auto read = [&](const T* from, std::int64_t at) {
      return load(from + row * n + at, live_of<T>(n, at), packed);
    };
    team.lanes([&](unsigned lane) {
      float sum = 0;
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        const Values<T> dy_here = read(dy, at), y_here = read(y, at);
        kept_dy[lane].put(number, dy_here);
        kept_y[lane].put(number, y_here);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) sum += dy_here.at[i] * y_here.at[i];
      });
      of_lanes[lane] = sum;
    });
    const float sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      walk<T, Plan>(lane, n, [&](int number, std::int64_t at) {
        Values<T> out = kept_dy[lane].get(number, [&] { return read(dy, at); });
        const Values<T> y_here = kept_y[lane].get(number, [&] { return read(y, at); });
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) out.at[i] = scale * y_here.at[i] * (out.at[i] - sum);
        store(dx + row * n + at, out, live_of<T>(n, at), packed);
      });
    });
  }
};

template <class Launcher>
void softmax_fwd(const SoftmaxFwd& args, const Launcher& launcher) {
  const std::int64_t keys = args.x.size(3);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    by_row_plan(keys, [&]<class Plan>(Plan) {
      const SoftmaxForward<T, Plan> body{args.y.as<T>(),
                                         args.x.as<const T>(),
                                         args.lse.as<float>(),
                                         cuda::mask_plan(args.mask),
                                         args.x.size(1),
                                         args.x.size(2),
                                         keys,
                                         static_cast<float>(args.scale),
                                         packed_rows<T>(keys, {&args.y, &args.x})};
      launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.x));
    });
  });
}

template <class Launcher>
void softmax_bwd(const SoftmaxBwd& args, const Launcher& launcher) {
  const std::int64_t n = args.y.size(-1);
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    by_row_plan(n, [&]<class Plan>(Plan) {
      const SoftmaxBackward<T, Plan> body{args.dx.as<T>(),
                                          args.dy.as<const T>(),
                                          args.y.as<const T>(),
                                          n,
                                          static_cast<float>(args.scale),
                                          packed_rows<T>(n, {&args.dx, &args.dy, &args.y})};
      launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.y));
    });
  });
}

} // namespace triax::fused
