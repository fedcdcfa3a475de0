// SPDX-License-Identifier: Apache-2.0
// y = residual + dropout(x + bias), pack by pack: as a separate operation, and as the input of a norm in the fused one.
//
// Threads: the rank's main thread launches. Ownership: the caller's views. Blocking: never. Errors: those of the
// launcher.
#pragma once

#include "rows.hpp"
#include "triax/cuda/drop.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

/// One bit per element of a row, for `count` elements from `column` on: set if the element is dropped. A block of
/// random words is computed once for its four elements.
TRIAX_LANE unsigned dropped_bits(const cuda::DropPlan& plan, std::int64_t row, std::int64_t column, int count) {
  const cuda::DropPlace place = cuda::drop_place(plan, row, column);
  const auto sample = static_cast<std::uint32_t>(plan.samples[place.sample]);
  const auto first = static_cast<std::uint64_t>(place.element), end = first + static_cast<std::uint64_t>(count);
  unsigned bits = 0;
  for (std::uint64_t element = first / 4 * 4; element < end; element += 4) {
    const PhiloxBlock words = philox_at(plan.key, element, plan.site, sample);
    TRIAX_UNROLL
    for (unsigned word = 0; word < 4; ++word) {
      const std::uint64_t at = element + word;
      if (at >= first && at < end && words[word] < plan.threshold) bits |= 1u << (at - first);
    }
  }
  return bits;
}

/// Position of a row in the numbering of dropout elements.
struct DropRow {
  std::uint64_t first = 0; // number of its first element
  std::uint32_t sample = 0;
};

/// Whether row numbers fit in 32 bits and every row starts at the first element of a block of random words. Then each
/// block belongs to one lane.
inline bool drops_in_blocks(const cuda::DropPlan& plan, std::int64_t rows) {
  return !plan.scores && plan.width % 4 == 0 && plan.column0 % 4 == 0 && rows <= 0xFFFFFFFF && plan.batch <= 0xFFFFFFFF;
}
TRIAX_LANE DropRow drop_row_in_blocks(const cuda::DropPlan& plan, std::int64_t row) {
  const std::uint32_t number = static_cast<std::uint32_t>(row), batch = static_cast<std::uint32_t>(plan.batch);
  const std::uint32_t of_sample = number / batch;
  return {static_cast<std::uint64_t>((plan.row0 + of_sample) * plan.width + plan.column0),
          static_cast<std::uint32_t>(plan.samples[number - of_sample * batch])};
}

/// Applies dropout to x, whole packs from element `at` of a row on: 0 if dropped, else scaled.
template <class T>
TRIAX_LANE void drop_in_blocks(Values<T>& x, const cuda::DropPlan& plan, DropRow row, std::int64_t at) {
  TRIAX_UNROLL
  for (int block = 0; block < kPack<T>; block += 4) {
    const std::uint64_t element = row.first + static_cast<std::uint64_t>(at) + static_cast<unsigned>(block);
    const PhiloxBlock words = philox_at(plan.key, element, plan.site, row.sample);
    TRIAX_UNROLL
    for (int word = 0; word < 4; ++word)
      x.at[block + word] = words[word] < plan.threshold ? 0.0f : x.at[block + word] * plan.scale;
  }
}

/// A source of rows that reads them unchanged. begin: what the packs of a row share; fetch: the data to load, first for
/// kTogether packs of a lane; made: the row's pack from that data; again: the same pack once more.
template <class T>
struct Plain {
  static constexpr int kFetched = 1, kTogether = 8;
  const T* x;
  std::int64_t n;

  struct Row {};
  template <class Plan>
  TRIAX_LANE Row begin(std::int64_t) const {
    return {};
  }
  template <class Plan>
  TRIAX_LANE Packs<T, kFetched> fetch(std::int64_t row, std::int64_t at) const {
    return again<Plan>(row, at);
  }
  template <class Plan>
  TRIAX_LANE Packs<T, 1> made(std::int64_t, Row, std::int64_t, const Packs<T, kFetched>& fetched) const {
    return fetched;
  }
  template <class Plan>
  TRIAX_LANE Packs<T, 1> again(std::int64_t row, std::int64_t at) const {
    return {read(x + row * n + at, live_in_row<T, Plan>(n, at), Plan::kPacked)};
  }
};

/// A source of rows of the sum, which also stores them. bias, residual: may be null.
template <class T>
struct Added {
  static constexpr int kFetched = 2, kTogether = 4;
  T* y;
  const T *x, *bias, *residual;
  cuda::DropPlan drop;
  std::int64_t n;
  bool drops;

  using Row = DropRow;
  template <class Plan>
  TRIAX_LANE Row begin(std::int64_t row) const {
    if (!Plan::kPacked || !drops) return {};
    return drop_row_in_blocks(drop, row);
  }
  template <class Plan>
  TRIAX_LANE Packs<T, kFetched> fetch(std::int64_t row, std::int64_t at) const {
    const std::int64_t place = row * n + at;
    const int live = live_in_row<T, Plan>(n, at);
    return {read(x + place, live, Plan::kPacked), residual ? read(residual + place, live, Plan::kPacked) : Pack<T>{}};
  }
  template <class Plan>
  TRIAX_LANE Packs<T, 1> made(std::int64_t row, Row here, std::int64_t at, const Packs<T, kFetched>& fetched) const {
    const int live = live_in_row<T, Plan>(n, at);
    Values<T> sum = widened(fetched.of[0]);
    if (bias) {
      const Values<T> more = load_fixed(bias + at, live, Plan::kPacked);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] += more.at[i];
    }
    if (drops && Plan::kPacked) {
      drop_in_blocks(sum, drop, here, at);
    } else if (drops) {
      const unsigned bits = dropped_bits(drop, row, at, live);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] = (bits >> i & 1u) != 0 ? 0.0f : sum.at[i] * drop.scale;
    }
    if (residual) {
      const Values<T> more = widened(fetched.of[1]);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] += more.at[i];
    }
    store(y + row * n + at, sum, live, Plan::kPacked);
    return {narrowed(sum)}; // rounded like the stored value
  }
  template <class Plan>
  TRIAX_LANE Packs<T, 1> again(std::int64_t row, std::int64_t at) const {
    return {read(y + row * n + at, live_in_row<T, Plan>(n, at), Plan::kPacked)};
  }
};

/// Whether the sum's rows can be processed in whole packs: both their memory and their dropout numbering.
template <class T>
bool packed_sums(const Added<T>& source, std::int64_t rows, std::initializer_list<const TensorView*> views) {
  return packed_rows<T>(source.n, views) && (!source.drops || drops_in_blocks(source.drop, rows));
}

template <class T>
Added<T> added(const BiasDropoutAdd& args) {
  Added<T> out{args.y.as<T>(),  args.x.as<const T>(), args.bias.as<const T>(), args.residual.as<const T>(), {},
               args.x.size(-1), args.drop.p > 0};
  if (out.drops) out.drop = cuda::drop_plan({args.y, args.x, args.drop});
  return out;
}

template <class T, class Plan>
struct AddRows {
  Added<T> source;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    const DropRow here = source.template begin<Plan>(row);
    team.lanes([&](unsigned lane) {
      walk<T, Plan, 2>(
          lane, source.n, [&](std::int64_t at) { return source.template fetch<Plan>(row, at); },
          [&](int, std::int64_t at, const auto& fetched) { source.template made<Plan>(row, here, at, fetched); });
    });
  }
};

template <class Launcher>
void bias_dropout_add(const BiasDropoutAdd& args, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1), rows = cuda::rows_of(args.x);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const Added<T> source = added<T>(args);
    const auto launch = [&]<class Plan>(Plan) {
      launcher.template teams<Plan::kLanes>(AddRows<T, Plan>{source}, rows);
    };
    // Nothing is read twice, so nothing is kept.
    const bool packed = packed_sums(source, rows, {&args.y, &args.x, &args.bias, &args.residual});
    if (n * static_cast<std::int64_t>(sizeof(T)) <= WarpRow::kBytes) {
      packed ? launch(RowPlan<kWarp, 0>{}) : launch(LooseWarpRow{});
    } else {
      packed ? launch(LongRow{}) : launch(LooseRow{});
    }
  });
}

/// For [rows, n] views, without an addition.
template <class Launcher>
void dropout(const Dropout& args, const Launcher& launcher) {
  bias_dropout_add({args.y, args.x, {}, {}, args.drop}, launcher);
}

} // namespace triax::kernels_fused
