// SPDX-License-Identifier: Apache-2.0
// Refusals with one cause for many tensors. Only the first is kept, with the number of the others.
//
// Threads: one. Errors: none.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "triax/error.hpp"

namespace triax::hf {

class GroupedRefusals {
 public:
  /// Refusals with the same hint have the same cause.
  void add(Refusal refusal) {
    for (Group& group : groups_) {
      if (group.first.hint != refusal.hint) continue;
      ++group.others;
      return;
    }
    groups_.push_back({std::move(refusal), 0});
  }

  Refusals take() {
    Refusals out;
    for (Group& group : groups_) {
      if (group.others > 0) group.first.message += text(" (and {} more)", group.others);
      out.add(std::move(group.first));
    }
    groups_.clear();
    return out;
  }

 private:
  struct Group {
    Refusal first;
    std::size_t others = 0;
  };
  std::vector<Group> groups_;
};

} // namespace triax::hf
