// SPDX-License-Identifier: Apache-2.0
#include "triax/layout.hpp"

#include <algorithm>
#include <limits>

#include "triax/error.hpp"

namespace triax {

namespace {

constexpr char kProduct = '*'; // between the names of a product of axes

} // namespace

Layout::Layout(std::vector<Axis> axes) : axes_(std::move(axes)) {
  std::int64_t world = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    TRIAX_REQUIRE(!axes_[i].name.empty(), "an axis of a layout needs a name");
    TRIAX_REQUIRE(axes_[i].name.find(kProduct) == std::string::npos, "axis {} has a '{}' in its name", axes_[i].name,
                  kProduct);
    TRIAX_REQUIRE(axes_[i].size >= 1, "axis {} has the size {}; it must be at least 1", axes_[i].name, axes_[i].size);
    TRIAX_REQUIRE((axes_[i].divides == Divides::layers) == (axes_[i].name == kPipelineAxis),
                  "axis {}: the axis that divides the layers, and no other, has the name {}", axes_[i].name,
                  kPipelineAxis);
    for (std::size_t j = 0; j < i; ++j)
      TRIAX_REQUIRE(axes_[i].name != axes_[j].name, "axis {} is given twice", axes_[i].name);
    world *= axes_[i].size;
    TRIAX_REQUIRE(world <= std::numeric_limits<int>::max(), "a layout of more than {} ranks",
                  std::numeric_limits<int>::max());
  }
}

Layout Layout::ptd(int pipeline, int tensor, int data) {
  return Layout({{std::string(kTensorAxis), tensor, Divides::tensors},
                 {std::string(kDataAxis), data, Divides::samples},
                 {std::string(kPipelineAxis), pipeline, Divides::layers}});
}

int Layout::world_size() const {
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
  TRIAX_REQUIRE(rank >= 0 && rank < world_size(), "rank {} is outside a world of {}", rank, world_size());
  std::vector<int> out;
  for (const Axis& axis : axes_) {
    out.push_back(rank % axis.size);
    rank /= axis.size;
  }
  return out;
}

/// Without the list of coordinates(): layers ask in each pass, which may not allocate.
int Layout::coordinate(int rank, std::string_view axis) const {
  TRIAX_REQUIRE(rank >= 0 && rank < world_size(), "rank {} is outside a world of {}", rank, world_size());
  for (const Axis& each : axes_) {
    if (each.name == axis) return rank % each.size;
    rank /= each.size;
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
  const std::string name(axis);
  return group(rank, std::span(&name, 1));
}

Group Layout::group(int rank, std::span<const std::string> axes) const {
  std::vector<int> at = coordinates(rank);
  std::vector<std::size_t> which; // indices in axes_
  std::vector<std::string> names; // in the order of the layout
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (std::ranges::find(axes, axes_[i].name) == axes.end()) continue;
    which.push_back(i);
    names.push_back(axes_[i].name);
    at[i] = 0;
  }
  Group group{product_name(names.empty() ? axes : names), {}, {}, 0};
  for (;;) { // counts the coordinates up, the first axis fastest
    const int member = rank_of(at);
    if (member == rank) group.group_rank = group.size();
    group.ranks.push_back(member);
    std::size_t next = 0;
    while (next < which.size() && ++at[which[next]] == axes_[which[next]].size) at[which[next++]] = 0;
    if (next == which.size()) break;
  }
  group.id = text("{}.{}", group.axis, group.ranks.front()); // the lowest rank distinguishes groups of the same axes
  return group;
}

int Layout::group_rank(int rank, std::span<const std::string> axes) const {
  const std::vector<int> at = coordinates(rank);
  int index = 0;
  for (std::size_t i = axes_.size(); i-- > 0;)
    if (std::ranges::find(axes, axes_[i].name) != axes.end()) index = index * axes_[i].size + at[i];
  return index;
}

std::vector<std::string> Layout::axes_dividing(std::initializer_list<Divides> what) const {
  std::vector<std::string> out;
  for (const Axis& axis : axes_)
    if (axis.size > 1 && std::ranges::find(what, axis.divides) != what.end()) out.push_back(axis.name);
  return out;
}

std::string Layout::product_name(std::span<const std::string> axes) {
  std::string out;
  for (const std::string& axis : axes) out += (out.empty() ? "" : std::string(1, kProduct)) + axis;
  return out;
}

std::string Layout::slowest_axis(std::string_view product) {
  return std::string(product.substr(product.rfind(kProduct) + 1)); // npos + 1 is 0
}

std::string Layout::describe(int rank) const {
  const std::vector<int> at = coordinates(rank);
  std::string out;
  for (std::size_t i = axes_.size(); i-- > 0;) out += text("{}{} {}", out.empty() ? "" : ", ", axes_[i].name, at[i]);
  return out;
}

Group Layout::world_group(int rank) const {
  Group group{"world", "world", {}, rank};
  for (int i = 0; i < world_size(); ++i) group.ranks.push_back(i);
  return group;
}

} // namespace triax
