// SPDX-License-Identifier: Apache-2.0
// Gradient of an embedding. Occurrences of tokens ("places") are sorted by token, equal tokens by row. Then one thread
// per pack of a token's row adds the token's occurrences in that order. The sorted position of an occurrence is the
// number of occurrences before it. A warp counts these by comparing with all occurrences: no atomics, and some hundred
// microseconds for 32768 occurrences.
//
// Threads: the rank's main thread launches. Ownership: the caller's views; the sorted order is in the call's scratch.
// Blocking: never. Errors: those of the launcher.
#pragma once

#include "packs.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

/// The sorted tokens, and the occurrences they come from: both [places].
struct SortedTokens {
  std::int32_t *tokens, *places;
};

struct SortTokens {
  const std::int32_t* tokens;
  SortedTokens sorted;
  std::int64_t places;

  template <class Team>
  TRIAX_LANE void operator()(Team& team, std::int64_t place) const {
    const std::int32_t token = tokens[place];
    typename Team::template Each<int> of_lanes;
    team.lanes([&](unsigned lane) {
      int before = 0;
      for (std::int64_t other = lane; other < places; other += Team::kLanes)
        before += tokens[other] < token || (tokens[other] == token && other < place) ? 1 : 0;
      of_lanes[lane] = before;
    });
    const int position = team.all(of_lanes, Plus{});
    team.lanes([&](unsigned lane) {
      if (lane != 0) return;
      sorted.tokens[position] = token;
      sorted.places[position] = static_cast<std::int32_t>(place);
    });
  }
};

/// An item is a pack of a row and a sorted position. Only the first position of each token does work.
template <class T, class To>
struct AddTokenRows {
  To* dtable;
  const T* dy;
  SortedTokens sorted;
  std::int64_t begin, valid, h, places, packs; // packs: per row
  bool packed;

  /// The first position after those of `token`.
  TRIAX_LANE std::int64_t end_of(std::int32_t token, std::int64_t position) const {
    std::int64_t low = position, high = places; // low has the token, high does not
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (sorted.tokens[middle] == token) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return high;
  }

  TRIAX_LANE void operator()(std::int64_t item) const {
    const std::int64_t position = item / packs, at = item % packs * kPack<T>;
    const std::int32_t token = sorted.tokens[position];
    if (position > 0 && sorted.tokens[position - 1] == token) return;
    const std::int64_t row = token - begin;
    if (row < 0 || row >= valid) return;
    const int live = live_of<T>(h, at);
    To* to = dtable + row * h + at;
    Values<T> sum;
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) sum.at[i] = i < live ? widened(to[i]) : 0.0f;
    const std::int64_t end = end_of(token, position);
    TRIAX_UNROLL_BY_4
    for (std::int64_t one = position; one < end; ++one) {
      const Values<T> more = load(dy + sorted.places[one] * h + at, live, packed);
      TRIAX_UNROLL
      for (int i = 0; i < kPack<T>; ++i) sum.at[i] += more.at[i];
    }
    TRIAX_UNROLL
    for (int i = 0; i < kPack<T>; ++i) {
      if (i < live) to[i] = narrowed<To>(sum.at[i]);
    }
  }
};

inline std::size_t scratch_of(const EmbedBwd& args) {
  return static_cast<std::size_t>(cuda::rows_of(args.dy)) * 2 * sizeof(std::int32_t);
}

template <class Launcher>
void embed_bwd(const EmbedBwd& args, const Launcher& launcher) {
  const std::int64_t places = cuda::rows_of(args.dy), h = args.dy.size(-1);
  if (places == 0) return;
  auto* scratch = reinterpret_cast<std::int32_t*>(launcher.scratch());
  const SortedTokens sorted{scratch, scratch + places};
  launcher.template teams<kWarp>(SortTokens{args.tokens.as<const std::int32_t>(), sorted, places}, places);
  cuda::by_types(args.dy.dtype(), args.dtable.dtype(), [&]<class T, class To>(T, To) {
    const std::int64_t packs = (h + kPack<T> - 1) / kPack<T>;
    const AddTokenRows<T, To> body{
        args.dtable.as<To>(),         args.dy.as<const T>(), sorted, args.begin, args.valid, h, places, packs,
        packed_rows<T>(h, {&args.dy})};
    launcher.items(body, places * packs);
  });
}

} // namespace triax::kernels_fused
