// SPDX-License-Identifier: Apache-2.0
// When a rank needs the weights of which stage, for Sharding::parameters: a use is a sequence of passes of the rank's
// row that read the weights of one stage only.
//
// At the start of a use, the weights of it and of the `prefetch` uses after it are gathered, as far as they are not
// there. At its end they are dropped, unless a use within this distance has the same stage. So a rank has weights of
// at most 1 + prefetch stages.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/rules.hpp"

namespace triax::schedule {

class WeightUses {
 public:
  WeightUses(std::span<const Action> row, int prefetch);

  // Call both for each pass of the row, in order. Most of them return no stage.
  /// Stages whose weights are gathered directly before pass `at`, in this order.
  std::vector<int> gathered_before(std::size_t at);
  /// Stages whose weights are dropped directly after pass `at`.
  std::vector<int> dropped_after(std::size_t at);

 private:
  struct Use {
    int stage = 0;
    std::size_t first = 0, last = 0; // passes
  };
  /// The stages of the uses [first, first + count), as far as they exist.
  std::vector<int> stages_of(std::size_t first, std::size_t count) const;

  std::vector<Use> uses_;
  std::size_t ahead_;         // uses of which weights are there: the current one, and those that are gathered early
  std::size_t current_ = 0;   // the use that runs, or is next
  std::vector<int> gathered_; // stages whose weights are there
};

} // namespace triax::schedule
