// SPDX-License-Identifier: Apache-2.0
// The layout: coordinates of each rank, and the process groups.
//
// Threads: values, any thread. Ownership: values own their lists. Blocking: never. Errors: Error for a rank or
// coordinate outside the layout.
// A layout is an ordered list of named axes; the first varies fastest. Triax uses tensor, data, pipeline in this order,
// so that the ranks of a tensor group are on one node where possible. More axes (context, expert) can be added to the
// list. What the engine does over an axis follows from what the axis divides, not from its name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "triax/export.hpp"

namespace triax {

/// The axes of every run.
/// @{
inline constexpr std::string_view kTensorAxis = "tensor";
inline constexpr std::string_view kDataAxis = "data";
inline constexpr std::string_view kPipelineAxis = "pipeline";
/// @}

/// The work or data that the ranks of an axis divide among them. layers: each has different stages; only kPipelineAxis.
/// tensors: each has a part of the parameters that name the axis in ParamSpec::cuts. samples: each has different
/// microbatches. positions: each has some positions of every sample.
enum class Divides : std::uint8_t { layers, tensors, samples, positions };

/// One dimension of the layout.
struct Axis {
  std::string name; // without '*'
  int size = 1;
  Divides divides = Divides::samples;
};

/// A process group: the ranks that agree in all axes but one or several, ascending.
struct Group {
  std::string axis;       // the name of the axis; of several: "tensor*data"; "world"
  std::string id;         // unique in the run and equal on all members: "tensor.3"
  std::vector<int> ranks; // in the world
  int group_rank = 0;     // position in `ranks` of the rank for which the group was made
  /// Number of members.
  int size() const { return static_cast<int>(ranks.size()); }
};

/// The axes of a run, and the coordinates of its ranks. The first axis varies fastest.
class TRIAX_API Layout {
 public:
  Layout() = default;
  /// Throws Error if a name is empty, repeated or has a '*', a size is below 1, there are more ranks than an int can
  /// count, or an axis that divides the layers has another name than kPipelineAxis, or this axis divides anything else.
  explicit Layout(std::vector<Axis> axes);
  /// The axes tensor, data and pipeline, in this order, which is not that of the arguments.
  static Layout ptd(int pipeline, int tensor, int data);

  /// The axes in their order, and the number of ranks.
  /// @{
  std::span<const Axis> axes() const { return axes_; }
  int world_size() const;
  /// @}
  /// Size of an axis; 1 for an axis that the layout does not have.
  int size(std::string_view axis) const;
  /// Coordinate of `rank` on an axis; 0 for an axis that the layout does not have.
  int coordinate(int rank, std::string_view axis) const;
  /// Coordinates in the order of axes(). Throws Error if the rank is outside the world.
  std::vector<int> coordinates(int rank) const;
  /// The rank with these coordinates, in the order of axes().
  int rank_of(std::span<const int> coordinates) const;
  /// The ranks that differ in the coordinate of this axis only: the rank alone if the layout does not have the axis.
  Group group(int rank, std::string_view axis) const;
  /// The ranks that differ in the coordinates of these axes only.
  Group group(int rank, std::span<const std::string> axes) const;
  /// group(rank, axes).group_rank, without listing the ranks of the group.
  int group_rank(int rank, std::span<const std::string> axes) const;
  /// All ranks.
  Group world_group(int rank) const;

  /// The axes of more than one rank that divide one of these, in the order of the layout.
  std::vector<std::string> axes_dividing(std::initializer_list<Divides> what) const;
  /// "tensor*data": the name of the group of these axes, which are in the order of the layout.
  static std::string product_name(std::span<const std::string> axes);
  /// The last axis of a product, which varies slowest: "data" of "tensor*data". Its communicator plugin also serves the
  /// product.
  static std::string slowest_axis(std::string_view product);
  /// "pipeline 1, data 0, tensor 3"
  std::string describe(int rank) const;

  /// Sizes of the three axes of every run.
  /// @{
  int pipeline_size() const { return size(kPipelineAxis); }
  int tensor_size() const { return size(kTensorAxis); }
  int data_size() const { return size(kDataAxis); }
  /// @}

 private:
  std::vector<Axis> axes_;
};

} // namespace triax
