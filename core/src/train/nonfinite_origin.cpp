// SPDX-License-Identifier: Apache-2.0
#include "train/nonfinite_origin.hpp"

#include <limits>

#include "triax/error.hpp"

namespace triax::train {

NonfiniteOrigin nonfinite_origin(const RepeatedStep& of) {
  using executor::NonfiniteSearch;
  NonfiniteSearch search(of.device, of.stream, of.layers);
  of.executor.repeat(of.step, search);
  // Among the ranks with the earliest layer, those whose weights are the cause come first: the smallest place, as the
  // largest of what is left of kMaxPlace.
  constexpr std::int32_t kMaxPlace = std::numeric_limits<std::int32_t>::max();
  const bool found = search.order() != NonfiniteSearch::kNothing;
  const std::int32_t left =
      found ? kMaxPlace - ((2 * search.order() + (search.is_in_weights() ? 0 : 1)) * of.world + of.rank) : 0;
  const std::int32_t most_left = of.agreement.largest(left, deadline_in(of.timeout_s));
  if (most_left == 0)
    return {
        "computed again, the values of every layer are finite: a sum over ranks overflows, or the memory of a device "
        "or a plugin gives other values each time"};
  const int place = kMaxPlace - most_left, first = place % of.world;
  if (first == of.rank) of.store.set(of.key, search.text());
  return {text("first on rank {}: {}", first, of.store.get(of.key, deadline_in(of.timeout_s))),
          place / of.world % 2 == 0};
}

} // namespace triax::train
