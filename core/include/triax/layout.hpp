// Which rank has which coordinates, and which ranks form a group.
//
// Threads: values, any thread. Ownership: they own their lists. Blocking: never.
// A layout is an ordered list of named axes, the first varying fastest. Triax uses tensor, data, pipeline in this
// order, so that tensor groups stay inside a node; the list leaves room for further axes (context, expert).
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

/// The ranks that differ in one axis only, in the order of their coordinate on it.
struct Group {
  std::string axis;       // the name of the axis, or "world"
  std::string id;         // unique in the run and equal on all members: "tensor.3"
  std::vector<int> ranks; // in the world
  int index = 0;          // this rank's place in `ranks`
  int size() const { return static_cast<int>(ranks.size()); }
};

class TRIAX_API Layout {
 public:
  Layout() = default;
  /// Throws Error on an empty name, a name given twice, or a size below 1.
  explicit Layout(std::vector<Axis> axes);
  /// The three axes in Triax's order.
  static Layout ptd(int pipeline, int tensor, int data);

  std::span<const Axis> axes() const { return axes_; }
  int world() const;
  /// Size of an axis; 1 for an axis that the layout does not have.
  int size(std::string_view axis) const;
  /// Coordinate of `rank` on an axis; 0 for an axis that the layout does not have.
  int coordinate(int rank, std::string_view axis) const;
  /// Coordinates in the order of axes(). Throws Error outside the world.
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
