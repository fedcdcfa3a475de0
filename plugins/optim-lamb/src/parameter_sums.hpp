// SPDX-License-Identifier: Apache-2.0
// Adds a pair of numbers of each parameter over the ranks that have parts of it: first over those that own parts of
// the same weights (ParameterShard::group), then over those of the axes that cut the parameter.
//
// Each of these is one all-gather per call, and the numbers are added in the order of the ranks. So the sums have the
// same bits on all ranks, and depend neither on the communicator nor on the other parameters of the call.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <triax/layout.hpp>
#include <triax/optimizer.hpp>
#include <vector>

namespace triax::optim_lamb {

class ParameterSums {
 public:
  /// The layout must outlive it.
  explicit ParameterSums(const Layout& layout) : layout_(layout) {}
  /// Lists the groups of these shards.
  void prepare(std::span<const ParameterShard> shards);
  std::size_t scratch_bytes(std::span<const ParameterShard> shards) const;
  /// The numbers of the shards in scratch memory, a pair each, which add() replaces by the sums. Empty in a dry run.
  static std::span<double> of(std::span<const ParameterShard> shards, const StepArgs& args);
  void add(std::span<const ParameterShard> shards, const StepArgs& args) const;

 private:
  /// Ranks over which some parameters are added: a group of owners, or an axis that cuts.
  struct Level {
    std::string name; // Group::axis
    bool cuts = false;
    int members = 1;
    bool has(const ParameterShard& shard) const;
  };
  void add_level(Level level);
  void add_over(const Level& level, std::span<const ParameterShard> shards, const StepArgs& args) const;

  const Layout& layout_;
  std::vector<Level> levels_; // groups of owners first
};

} // namespace triax::optim_lamb
