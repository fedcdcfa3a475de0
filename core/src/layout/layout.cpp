// SPDX-License-Identifier: Apache-2.0
#include "triax/layout.hpp"

#include <limits>

#include "triax/error.hpp"

namespace triax {

Layout::Layout(std::vector<Axis> axes) : axes_(std::move(axes)) {
  std::int64_t world = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    TRIAX_REQUIRE(!axes_[i].name.empty(), "an axis of a layout needs a name");
    TRIAX_REQUIRE(axes_[i].size >= 1, "axis {} has the size {}; it must be at least 1", axes_[i].name, axes_[i].size);
    for (std::size_t j = 0; j < i; ++j) {
      TRIAX_REQUIRE(axes_[i].name != axes_[j].name, "axis {} is given twice", axes_[i].name);
    }
    world *= axes_[i].size;
    TRIAX_REQUIRE(world <= std::numeric_limits<int>::max(), "a layout of more than {} ranks",
                  std::numeric_limits<int>::max());
  }
}

Layout Layout::ptd(int pipeline, int tensor, int data) {
  return Layout({{"tensor", tensor}, {"data", data}, {"pipeline", pipeline}});
}

int Layout::world() const {
  int product = 1;
  for (const Axis& axis : axes_) product *= axis.size;
  return product;
}

int Layout::size(std::string_view axis) const {
  for (const Axis& each : axes_) {
    if (each.name == axis) return each.size;
  }
  return 1;
}

std::vector<int> Layout::coordinates(int rank) const {
  TRIAX_REQUIRE(rank >= 0 && rank < world(), "rank {} is outside a world of {}", rank, world());
  std::vector<int> out;
  for (const Axis& axis : axes_) {
    out.push_back(rank % axis.size);
    rank /= axis.size;
  }
  return out;
}

int Layout::coordinate(int rank, std::string_view axis) const {
  const std::vector<int> all = coordinates(rank);
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) return all[i];
  }
  return 0;
}

int Layout::rank_of(std::span<const int> coordinates) const {
  TRIAX_REQUIRE(coordinates.size() == axes_.size(), "{} coordinates for a layout of {} axes", coordinates.size(),
                axes_.size());
  int rank = 0;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    TRIAX_REQUIRE(coordinates[i] >= 0 && coordinates[i] < axes_[i].size, "coordinate {} is outside axis {} of size {}",
                  coordinates[i], axes_[i].name, axes_[i].size);
    rank = rank * axes_[i].size + coordinates[i];
  }
  return rank;
}

Group Layout::group(int rank, std::string_view axis) const {
  std::vector<int> at = coordinates(rank);
  Group group{std::string(axis), {}, {}, 0};
  std::size_t which = axes_.size();
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) which = i;
  }
  if (which == axes_.size()) {
    group.ranks = {rank};
  } else {
    group.index = at[which];
    for (int i = 0; i < axes_[which].size; ++i) {
      at[which] = i;
      group.ranks.push_back(rank_of(at));
    }
  }
  group.id = text("{}.{}", axis, group.ranks.front()); // the lowest rank distinguishes groups of one axis
  return group;
}

Group Layout::world_group(int rank) const {
  Group group{"world", "world", {}, rank};
  for (int i = 0; i < world(); ++i) group.ranks.push_back(i);
  return group;
}

} // namespace triax
