// SPDX-License-Identifier: Apache-2.0
// The parameters that the checks of optimizers step, and how shards and ranks divide them.
//
// Values depend on what they are of, not on the shard or rank that has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "triax/layout.hpp"
#include "triax/model.hpp"

namespace triax::conformance {

/// A part of parameter number `parameter` of the fixed list. The members have the meaning of those of ParameterShard.
struct Part {
  std::size_t parameter = 0;
  ParamSpec spec; // its name is that of the parameter
  std::int64_t first = 0, elements = 0;
  std::string group = {};
  int members = 1;
  std::int64_t owned_first = 0, owned_elements = 0;
  bool sharded = false;

  /// Its element number `local`, in the whole parameter.
  std::int64_t global(std::int64_t local) const;
};

/// All parameters, each as one part. The first three are of one stage, the others of another.
std::vector<Part> whole_parameters();
inline constexpr std::size_t kFirstStage = 3;
/// The parts that shard `index` of `count` has: parameters are cut at odd elements, and a shard need not have a part
/// of each.
std::vector<Part> parts_of_shard(int index, int count);

/// How ranks divide the parameters. Tensor ranks have some rows of the first matrix, the last rank fewer than it
/// stores; some columns of the second; and all of the other parameters. Data ranks own parts of all of them, some of
/// which are empty; sharded, they have no more.
struct RankDivision {
  int tensor = 1, data = 1;
  bool sharded = false; // by `optimizer.shard`

  Layout layout() const { return Layout::ptd(1, tensor, data); }
};
std::string to_text(const RankDivision& division); // "2 tensor ranks, 2 data ranks with optimizer.shard"
std::vector<Part> parts_of_rank(const RankDivision& division, int rank);
/// The axes of each group of more than one rank over which these parts may be added.
std::vector<std::vector<std::string>> axes_of_groups(const Layout& layout);

/// In (-1, 1), of several magnitudes.
double fixed_value(std::uint32_t site, std::size_t parameter, std::int64_t element);

} // namespace triax::conformance
