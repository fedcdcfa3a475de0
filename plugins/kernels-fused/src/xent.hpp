// SPDX-License-Identifier: Apache-2.0
// Cross-entropy over rows of logits, one block per row. The fused forward computes the maximum and the sum of
// exponentials in one pass: it rescales the sum whenever the maximum grows (Milakov & Gimelshein 2018).
//
// Threads: the rank's main thread launches. Ownership: the caller's views. Blocking: never. Errors: those of the
// launcher.
#pragma once

#include "rows.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

/// Input of the kernels: rows of `columns` logits, the first `valid` of which count. Targets are relative to the
/// range's first token `begin`.
template <class T, class RowsPlan>
struct LogitRows {
  using Element = T;
  using Plan = RowsPlan;
  const T* logits;
  const std::int32_t* targets; // may be null
  std::int64_t columns, begin, valid;

  TRIAX_LANE const T* of(std::int64_t row) const { return logits + row * columns; }
  /// use(at, live, x) for each of the lane's packs among the first n logits of a row.
  template <class Use>
  TRIAX_LANE void each(unsigned lane, std::int64_t row, std::int64_t n, Use use) const {
    walk<T, Plan>(
        lane, n, [&](std::int64_t at) { return read(of(row) + at, live_of<T>(n, at), Plan::kPacked); },
        [&](int, std::int64_t at, Pack<T> pack) { use(at, live_of<T>(n, at), widened(pack)); });
  }
  /// The column of a row's target; -1 if it is not in this range.
  TRIAX_LANE std::int64_t target(std::int64_t row) const {
    const std::int64_t column = targets[row] - begin;
    return column >= 0 && column < valid ? column : -1;
  }
  /// The target's logit minus the row's maximum; 0 if the target is not in this range.
  TRIAX_LANE float target_logit(std::int64_t row, float max) const {
    const std::int64_t column = target(row);
    return column < 0 ? 0.0f : widened(of(row)[column]) - max;
  }
};

template <class Rows>
struct LargestLogit {
  using T = typename Rows::Element;
  Rows rows;
  float* max_of;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    typename Team::template Each<float> of_lanes;
    team.lanes([&](unsigned lane) {
      float max = -INFINITY; // the result if a range is all padding
      rows.each(lane, row, rows.valid, [&](std::int64_t, int live, const Values<T>& x) {
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) max = i < live ? Larger{}(max, x.at[i]) : max;
      });
      of_lanes[lane] = max;
    });
    const float max = team.all(of_lanes, Larger{});
    team.lanes([&](unsigned lane) {
      if (lane == 0) max_of[row] = max;
    });
  }
};

template <class Rows>
struct SumExponentials {
  using T = typename Rows::Element;
  Rows rows;
  const float* max_of;
  float *sum_of, *target_of;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const float max = max_of[row];
    typename Team::template Each<float> of_lanes;
    team.lanes([&](unsigned lane) {
      float sum = 0;
      rows.each(lane, row, rows.valid, [&](std::int64_t, int live, const Values<T>& x) {
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) sum += i < live ? expf(x.at[i] - max) : 0.0f;
      });
      of_lanes[lane] = sum;
    });
    const float sum = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      if (lane != 0) return;
      sum_of[row] = sum;
      target_of[row] = rows.target_logit(row, max);
    });
  }
};

template <class Rows>
struct XentForward {
  using T = typename Rows::Element;
  Rows rows;
  float *max_of, *sum_of, *target_of;

  /// Adds a pack to what was seen.
  TRIAX_LANE ExpSum with(ExpSum seen, const Values<T>& x, int live) const {
    float max = seen.max;
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) max = i < live ? Larger{}(max, x.at[i]) : max;
    if (max > seen.max) seen = {max, seen.sum * expf(seen.max - max)};
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) {
      // exp(-infinity) is 0 for every maximum, including -infinity.
      if (i < live && x.at[i] != -INFINITY) seen.sum += expf(x.at[i] - seen.max);
    }
    return seen;
  }

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    typename Team::template Each<ExpSum> of_lanes;
    team.lanes([&](unsigned lane) {
      ExpSum seen;
      rows.each(lane, row, rows.valid, [&](std::int64_t, int live, const Values<T>& x) { seen = with(seen, x, live); });
      of_lanes[lane] = seen;
    });
    const ExpSum all = team.all(of_lanes, JoinExpSums{});
    team.lanes([&](unsigned lane) {
      if (lane != 0) return;
      max_of[row] = all.max;
      sum_of[row] = all.sum;
      target_of[row] = rows.target_logit(row, all.max);
    });
  }
};

template <class Rows>
struct XentBackward {
  using T = typename Rows::Element;
  Rows rows;
  T* gradient; // overwrites the logits
  const float *max_of, *sum_of;
  const StepScalars* scalars;
  double given_scale;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const auto scale = static_cast<float>(given_scale * (scalars ? static_cast<double>(scalars->loss_scale) : 1.0));
    const float max = max_of[row], sum = sum_of[row];
    const std::int64_t target = rows.target(row);
    team.lanes([&](unsigned lane) {
      rows.each(lane, row, rows.columns, [&](std::int64_t at, int live, Values<T> x) {
        TRIAX_UNROLL
        for (int i = 0; i < kPack<T>; ++i) {
          const float onehot = at + i == target ? 1.0f : 0.0f;
          x.at[i] = at + i < rows.valid ? (expf(x.at[i] - max) / sum - onehot) * scale : 0.0f;
        }
        store(gradient + row * rows.columns + at, x, live, Rows::Plan::kPacked);
      });
    });
  }
};

/// body(rows) with the rows of a view. Rows of a vocabulary are too long to keep.
template <class Body>
void with_logit_rows(const TensorView& logits, const TensorView& targets, std::int64_t begin, std::int64_t valid,
                     Body body) {
  cuda::by_type(logits.dtype(), [&]<class T>(T) {
    const std::int64_t columns = logits.size(-1);
    const auto with = [&]<class Plan>(Plan) {
      body(LogitRows<T, Plan>{logits.as<const T>(), targets.as<const std::int32_t>(), columns, begin, valid});
    };
    packed_rows<T>(columns, {&logits}) ? with(LongRow{}) : with(LooseRow{});
  });
}

template <class Launcher>
void xent_max(const XentMax& args, const Launcher& launcher) {
  with_logit_rows(args.logits, {}, 0, args.valid, [&]<class Rows>(const Rows& rows) {
    launcher.template teams<kBlock>(LargestLogit<Rows>{rows, args.max.as<float>()}, cuda::rows_of(args.logits));
  });
}

template <class Launcher>
void xent_sums(const XentSums& args, const Launcher& launcher) {
  with_logit_rows(args.logits, args.targets, args.begin, args.valid, [&]<class Rows>(const Rows& rows) {
    const SumExponentials<Rows> body{rows, args.max.as<const float>(), args.sum_exp.as<float>(),
                                     args.target_logit.as<float>()};
    launcher.template teams<kBlock>(body, cuda::rows_of(args.logits));
  });
}

/// All results except the loss.
template <class Launcher>
void xent_rows(const XentFused& args, const Launcher& launcher) {
  with_logit_rows(args.logits, args.targets, 0, args.valid, [&]<class Rows>(const Rows& rows) {
    const XentForward<Rows> body{rows, args.max.as<float>(), args.sum_exp.as<float>(), args.target_logit.as<float>()};
    launcher.template teams<kBlock>(body, cuda::rows_of(args.logits));
  });
}

template <class Launcher>
void xent_bwd(const XentBwd& args, const Launcher& launcher) {
  with_logit_rows(args.logits, args.targets, args.begin, args.valid, [&]<class Rows>(const Rows& rows) {
    const XentBackward<Rows> body{rows,
                                  args.logits.as<typename Rows::Element>(),
                                  args.max.as<const float>(),
                                  args.sum_exp.as<const float>(),
                                  args.scalars,
                                  args.scale};
    launcher.template teams<kBlock>(body, cuda::rows_of(args.logits));
  });
}

} // namespace triax::kernels_fused
