// y = residual + dropout(x + bias), pack by pack: an operation of its own, and what a norm reads in the fused one.
//
// Threads: launching is the rank's main thread's. Ownership: views of the caller. Blocking: never. Errors: as the
// launcher's.
#pragma once

#include "rows.hpp"
#include "triax/cuda/drop.hpp"
#include "triax/cuda/types.hpp"

namespace triax::fused {

/// A bit for each of `count` elements of a row from `column` on, set where the element is dropped. One block of random
/// words serves the four elements that it holds.
TRIAX_LANE_CALL unsigned dropped_bits(const cuda::DropPlan& plan, std::int64_t row, std::int64_t column, int count) {
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

/// Rows as they are.
template <class T>
struct Plain {
  const T* x;
  std::int64_t n;
  bool packed;

  TRIAX_LANE Values<T> first(std::int64_t row, std::int64_t at, int live) const { return again(row, at, live); }
  TRIAX_LANE Values<T> again(std::int64_t row, std::int64_t at, int live) const {
    return load(x + row * n + at, live, packed);
  }
};

/// Rows of the sum, which are stored when they are first read. bias, residual: may be null.
template <class T>
struct Added {
  T* y;
  const T *x, *bias, *residual;
  cuda::DropPlan drop;
  std::int64_t n;
  bool drops, packed;

  TRIAX_LANE Values<T> first(std::int64_t row, std::int64_t at, int live) const {
    const std::int64_t place = row * n + at;
    Values<T> sum = load(x + place, live, packed);
    if (bias) {
      const Values<T> more = load(bias + at, live, packed);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] += more.at[i];
    }
    if (drops) {
      const unsigned bits = dropped_bits(drop, row, at, live);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] = (bits >> i & 1u) != 0 ? 0.0f : sum.at[i] * drop.scale;
    }
    if (residual) {
      const Values<T> more = load(residual + place, live, packed);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] += more.at[i];
    }
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) sum.at[i] = widened(narrowed<T>(sum.at[i])); // as what reads it will
    store(y + place, sum, live, packed);
    return sum;
  }
  TRIAX_LANE Values<T> again(std::int64_t row, std::int64_t at, int live) const {
    return load(y + row * n + at, live, packed);
  }
};

template <class T>
Added<T> added(const BiasDropoutAdd& args, bool packed) {
  Added<T> out{args.y.as<T>(),
               args.x.as<const T>(),
               args.bias.as<const T>(),
               args.residual.as<const T>(),
               {},
               args.x.size(-1),
               args.drop.p > 0,
               packed};
  if (out.drops) out.drop = cuda::drop_plan({args.y, args.x, args.drop});
  return out;
}

template <class T, class Plan>
struct AddRows {
  Added<T> source;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t row) const {
    team.lanes([&](unsigned lane) {
      walk<T, Plan>(lane, source.n, [&](int, std::int64_t at) { source.first(row, at, live_of<T>(source.n, at)); });
    });
  }
};

template <class Launcher>
void bias_dropout_add(const BiasDropoutAdd& args, const Launcher& launcher) {
  const std::int64_t n = args.x.size(-1), rows = cuda::rows_of(args.x);
  cuda::by_type(args.x.dtype(), [&]<class T>(T) {
    const Added<T> source = added<T>(args, packed_rows<T>(n, {&args.y, &args.x, &args.bias, &args.residual}));
    if (n <= WarpRow::kLongest) {
      launcher.template teams<kWarp>(AddRows<T, RowPlan<kWarp, 0>>{source}, rows);
    } else {
      launcher.template teams<kBlock>(AddRows<T, LongRow>{source}, rows);
    }
  });
}

/// Of [rows, n] views: nothing is added to.
template <class Launcher>
void dropout(const Dropout& args, const Launcher& launcher) {
  bias_dropout_add({args.y, args.x, {}, {}, args.drop}, launcher);
}

} // namespace triax::fused
