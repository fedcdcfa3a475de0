// SPDX-License-Identifier: Apache-2.0
#include "schedule/weight_uses.hpp"

#include <algorithm>

namespace triax::schedule {

namespace {

bool has_stage(const std::vector<int>& stages, int stage) {
  return std::ranges::find(stages, stage) != stages.end();
}

} // namespace

WeightUses::WeightUses(std::span<const Action> row, int prefetch) : ahead_(1 + static_cast<std::size_t>(prefetch)) {
  for (std::size_t at = 0; at < row.size(); ++at) {
    if (!reads_weights(kind_of(row[at].kind))) continue;
    if (uses_.empty() || uses_.back().stage != row[at].stage) uses_.push_back({row[at].stage, at, at});
    uses_.back().last = at;
  }
}

std::vector<int> WeightUses::stages_of(std::size_t first, std::size_t count) const {
  std::vector<int> out;
  for (std::size_t use = first; use < std::min(first + count, uses_.size()); ++use) out.push_back(uses_[use].stage);
  return out;
}

std::vector<int> WeightUses::gathered_before(std::size_t at) {
  std::vector<int> out;
  if (current_ == uses_.size() || uses_[current_].first != at) return out;
  for (const int stage : stages_of(current_, ahead_)) {
    if (has_stage(gathered_, stage)) continue;
    gathered_.push_back(stage);
    out.push_back(stage);
  }
  return out;
}

std::vector<int> WeightUses::dropped_after(std::size_t at) {
  if (current_ == uses_.size() || uses_[current_].last != at) return {};
  const int stage = uses_[current_++].stage;
  if (has_stage(stages_of(current_, ahead_), stage)) return {};
  std::erase(gathered_, stage);
  return {stage};
}

} // namespace triax::schedule
