// SPDX-License-Identifier: Apache-2.0
// The layout: coordinates of each rank, and the process groups.
//
// Threads: values, any thread. Ownership: values own their lists. Blocking: never. Errors: Error for a rank or
// coordinate outside the layout.
// A layout is an ordered list of named axes; the first varies fastest. Triax uses tensor, data, pipeline in this order,
// so that the ranks of a tensor group are on one node where possible. More axes (context, expert) can be added to the
// list.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/export.hpp"

namespace triax {

struct Axis {
  std::string name; // "tensor", "data", "pipeline"
  int size = 1;
};

/// The ranks that differ in the coordinate of one axis only, in the order of that coordinate.
struct Group {
  std::string axis;       // the name of the axis, or "world"
  std::string id;         // unique in the run and equal on all members: "tensor.3"
  std::vector<int> ranks; // in the world
  int index = 0;          // index of this rank in `ranks`
  int size() const { return static_cast<int>(ranks.size()); }
};

class TRIAX_API Layout {
 public:
  Layout() = default;
  /// Throws Error if a name is empty or repeated, or a size is below 1.
  explicit Layout(std::vector<Axis> axes);
  /// The axes tensor, data and pipeline, in this order.
  static Layout ptd(int pipeline, int tensor, int data);

  std::span<const Axis> axes() const { return axes_; }
  int world() const;
  /// Size of an axis; 1 for an axis that the layout does not have.
  int size(std::string_view axis) const;
  /// Coordinate of `rank` on an axis; 0 for an axis that the layout does not have.
  int coordinate(int rank, std::string_view axis) const;
  /// Coordinates in the order of axes(). Throws Error if the rank is outside the world.
  std::vector<int> coordinates(int rank) const;
  int rank_of(std::span<const int> coordinates) const;
  Group group(int rank, std::string_view axis) const;
  Group world_group(int rank) const;

  int pipeline() const { return size("pipeline"); }
  int tensor() const { return size("tensor"); }
  int data() const { return size("data"); }

 private:
  std::vector<Axis> axes_;
};

} // namespace triax
