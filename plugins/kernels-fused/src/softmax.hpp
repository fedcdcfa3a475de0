// SPDX-License-Identifier: Apache-2.0
// Softmax of attention scores with scale and mask; a team keeps its row in registers. Hidden keys are not read: the
// cost of a causal row is the keys it sees, plus writing zeros.
//
// Threads: the rank's main thread launches. Ownership: the caller's views. Blocking: never. Errors: those of the
// launcher.
#pragma once

#include "rows.hpp"
#include "triax/cuda/mask.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

/// x, y [b, heads, queries, keys]; y may be x: the lane that reads a pack last writes it. lse may be null.
template <class T, class Plan>
struct SoftmaxForward {
  T* y;
  const T* x;
  float* lse;
  cuda::MaskPlan mask;
  std::int64_t heads, queries, keys;
  float scale;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const std::int64_t seen = cuda::seen_keys(mask, row / (heads * queries), row % queries, keys);
    typename Team::template Each<Kept<T, Plan>> kept;
    typename Team::template Each<float> of_lanes;
    const auto fetch = [&](std::int64_t at) -> Packs<T, 1> {
      if (at >= seen) return {};
      return {read(x + row * keys + at, live_of<T>(seen, at), Plan::kPacked)};
    };
    team.lanes([&](unsigned lane) {
      float largest = -INFINITY;
      walk<T, Plan>(lane, seen, fetch, [&](int number, std::int64_t at, const Packs<T, 1>& packs) {
        kept[lane].put(number, packs);
        const int live = live_of<T>(seen, at);
        const Values<T> here = widened(packs.of[0]);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) largest = i < live ? Larger{}(largest, scale * here.at[i]) : largest;
      });
      of_lanes[lane] = largest;
    });
    const float max = team.all(of_lanes, Larger{});

    const auto exponentials = [&](std::int64_t at, const Packs<T, 1>& packs) {
      const int live = live_of<T>(seen, at);
      Values<T> out = widened(packs.of[0]);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) out.at[i] = i < live ? expf(scale * out.at[i] - max) : 0.0f;
      return out;
    };
    team.lanes([&](unsigned lane) {
      float sum = 0;
      kept[lane].walk_again(lane, seen, fetch, [&](std::int64_t at, const Packs<T, 1>& packs) {
        const Values<T> e = exponentials(at, packs);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) sum += e.at[i];
      });
      of_lanes[lane] = sum;
    });
    const float sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      kept[lane].walk_again(lane, keys, fetch, [&](std::int64_t at, const Packs<T, 1>& packs) {
        Values<T> out{};
        if (at < seen) {
          out = exponentials(at, packs);
          TRIAX_UNROLL
          for (int i = 0; i < kPack<T>; ++i) out.at[i] /= sum;
        }
        store(y + row * keys + at, out, live_in_row<T, Plan>(keys, at), Plan::kPacked);
      });
      if (lse && lane == 0) lse[row] = max + logf(sum); // -infinity if no key is seen
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

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    typename Team::template Each<Kept<T, Plan, 2>> kept; // of dy and y
    typename Team::template Each<float> of_lanes;
    const auto fetch = [&](std::int64_t at) -> Packs<T, 2> {
      const int live = live_in_row<T, Plan>(n, at);
      return {read(dy + row * n + at, live, Plan::kPacked), read(y + row * n + at, live, Plan::kPacked)};
    };
    team.lanes([&](unsigned lane) {
      float sum = 0;
      walk<T, Plan>(lane, n, fetch, [&](int number, std::int64_t, const Packs<T, 2>& packs) {
        kept[lane].put(number, packs);
        const Values<T> dy_here = widened(packs.of[0]), y_here = widened(packs.of[1]);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) sum += dy_here.at[i] * y_here.at[i];
      });
      of_lanes[lane] = sum;
    });
    const float sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      kept[lane].walk_again(lane, n, fetch, [&](std::int64_t at, const Packs<T, 2>& packs) {
        Values<T> out = widened(packs.of[0]);
        const Values<T> y_here = widened(packs.of[1]);
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) out.at[i] = scale * y_here.at[i] * (out.at[i] - sum);
        store(dx + row * n + at, out, live_in_row<T, Plan>(n, at), Plan::kPacked);
      });
    });
  }
};

template <class Launcher>
void softmax_fwd(const SoftmaxFwd& args, const Launcher& launcher) {
  const std::int64_t keys = args.x.size(3);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    by_row_plan<T>(keys, packed_rows<T>(keys, {&args.y, &args.x}), [&]<class Plan>(Plan) {
      const SoftmaxForward<T, Plan> body{args.y.as<T>(),
                                         args.x.as<const T>(),
                                         args.lse.as<float>(),
                                         cuda::mask_plan(args.mask),
                                         args.x.size(1),
                                         args.x.size(2),
                                         keys,
                                         static_cast<float>(args.scale)};
      launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.x));
    });
  });
}

template <class Launcher>
void softmax_bwd(const SoftmaxBwd& args, const Launcher& launcher) {
  const std::int64_t n = args.y.size(-1);
  cuda::by_type(args.y.dtype(), [&]<class T>(T) {
    by_row_plan<T>(n, packed_rows<T>(n, {&args.dx, &args.dy, &args.y}), [&]<class Plan>(Plan) {
      const SoftmaxBackward<T, Plan> body{args.dx.as<T>(), args.dy.as<const T>(), args.y.as<const T>(), n,
                                          static_cast<float>(args.scale)};
      launcher.template teams<Plan::kLanes>(body, cuda::rows_of(args.y));
    });
  });
}

} // namespace triax::kernels_fused
