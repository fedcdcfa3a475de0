// SPDX-License-Identifier: Apache-2.0
// Steps on ranks that divide the parameters, and the parameters that they have then.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "collective_log.hpp"
#include "optimizer_check_tables.hpp"

namespace triax::conformance {

inline constexpr int kDividedSteps = 3;

/// The divisions that the engine accepts for the optimizer: tensor ranks, data ranks, and both; with `optimizer.shard`,
/// if it is allowed.
std::vector<RankDivision> divisions_of(const OptimizerSubject& subject);

/// The calls on communicators in a dry run of a step of each rank.
using PostsOfRanks = std::vector<std::vector<Posted>>;
PostsOfRanks dry_run_posts(const OptimizerSubject& subject, const StepTypes& types, const RankDivision& division);
/// The calls that differ between two ranks of a group, as the failures of a check: empty if all post the same.
std::vector<std::string> post_differences(const RankDivision& division, const PostsOfRanks& posts);

/// Merges the tensors of ranks into whole parameters.
class MergedTensors {
 public:
  /// Any thread.
  void add(const Stepper& stepper, int rank);
  const Tensors& whole() const { return whole_; }
  /// For each rank, the first element that has other bits on an earlier one.
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  std::string add_tensor(const std::string& name, const TensorView& view, const Part& part, int rank);

  std::mutex mutex_;
  Tensors whole_;
  std::map<std::string, std::vector<int>> ranks_; // that have set each element; -1: none
  std::vector<std::string> differences_;
};

/// Makes steps on all ranks, each with one call for each stage, and merges their tensors. It fails with the first call
/// on a communicator that is not in the dry run of the rank.
void step_ranks(const OptimizerSubject& subject, const StepTypes& types, const RankDivision& division,
                MergedTensors& merged, Report& report);

} // namespace triax::conformance
