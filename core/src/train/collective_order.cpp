// SPDX-License-Identifier: Apache-2.0
#include "train/collective_order.hpp"

#include <algorithm>

#include "triax/text.hpp"

namespace triax::train {

std::string collective_difference(std::span<const Collective> of_first, std::span<const Collective> of_other,
                                  int other) {
  const auto [first, second] = std::ranges::mismatch(of_first, of_other);
  if (first == of_first.end() && second == of_other.end()) return {};
  if (first == of_first.end() || second == of_other.end())
    return text("tensor rank 0 posts {}, tensor rank {} posts {}", of_first.size(), other, of_other.size());
  return text("call {} is {} on tensor rank 0 and {} on tensor rank {}", first - of_first.begin() + 1,
              triax::to_text(*first), triax::to_text(*second), other);
}

} // namespace triax::train
