// SPDX-License-Identifier: Apache-2.0
#include "parameter_sums.hpp"

#include <algorithm>
#include <cstdint>
#include <triax/communicator.hpp>
#include <triax/error.hpp>
#include <utility>

namespace triax::optim_lamb {

bool ParameterSums::Level::has(const ParameterShard& shard) const {
  return cuts ? std::ranges::find(shard.spec->cuts, name, &Cut::axis) != shard.spec->cuts.end() : shard.group == name;
}

void ParameterSums::add_level(Level level) {
  const auto same = [&level](const Level& other) { return other.name == level.name && other.cuts == level.cuts; };
  if (level.members > 1 && std::ranges::none_of(levels_, same)) levels_.push_back(std::move(level));
}

void ParameterSums::prepare(std::span<const ParameterShard> shards) {
  levels_.clear();
  for (const ParameterShard& shard : shards) add_level({.name = shard.group, .members = shard.members});
  for (const ParameterShard& shard : shards)
    for (const Cut& cut : shard.spec->cuts)
      add_level({.name = cut.axis, .cuts = true, .members = layout_.size(cut.axis)});
}

/// The sums, the numbers of a level, and those of all its ranks.
std::size_t ParameterSums::scratch_bytes(std::span<const ParameterShard> shards) const {
  std::size_t members = 0;
  for (const Level& level : levels_)
    if (std::ranges::any_of(shards, [&level](const ParameterShard& shard) { return level.has(shard); }))
      members = std::max(members, static_cast<std::size_t>(level.members));
  return 2 * sizeof(double) * shards.size() * (members == 0 ? 1 : 2 + members);
}

std::span<double> ParameterSums::of(std::span<const ParameterShard> shards, const StepArgs& args) {
  if (args.scratch.empty()) return {};
  return {reinterpret_cast<double*>(args.scratch.data()), 2 * shards.size()};
}

void ParameterSums::add(std::span<const ParameterShard> shards, const StepArgs& args) const {
  for (const Level& level : levels_) add_over(level, shards, args);
}

void ParameterSums::add_over(const Level& level, std::span<const ParameterShard> shards, const StepArgs& args) const {
  const auto has = [&level](const ParameterShard& shard) { return level.has(shard); };
  const std::int64_t count = 2 * std::ranges::count_if(shards, has);
  if (count == 0) return;
  Communicator* const group = args.groups.find(level.name);
  TRIAX_REQUIRE(group, "optim-lamb: there is no communicator of {} for trust ratios", level.name);
  const std::span<double> sums = of(shards, args);
  double* const own = sums.empty() ? nullptr : sums.data() + sums.size();
  double* const gathered = own ? own + count : nullptr;
  std::int64_t at = 0;
  for (std::size_t i = 0; !sums.empty() && i < shards.size(); ++i) {
    if (!has(shards[i])) continue;
    own[at++] = sums[2 * i];
    own[at++] = sums[2 * i + 1];
  }
  const TensorView of_rank(own, DType::f64, {count}), of_all(gathered, DType::f64, {count * level.members});
  group->wait(group->all_gather(of_rank, of_all, args.op.stream, args.action), args.op.stream);
  if (sums.empty()) return; // dry run
  args.op.stream.ready();
  at = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!has(shards[i])) continue;
    for (const std::size_t number : {2 * i, 2 * i + 1}) {
      sums[number] = 0;
      for (int member = 0; member < level.members; ++member) sums[number] += gathered[member * count + at];
      ++at;
    }
  }
}

} // namespace triax::optim_lamb
