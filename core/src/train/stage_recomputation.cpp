// SPDX-License-Identifier: Apache-2.0
#include "train/stage_recomputation.hpp"

#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::train {

namespace {

StageRecomputation of_stage(int stage, const std::vector<ChosenBlock>& blocks) {
  StageRecomputation out{stage, {}, 0};
  double recomputed_s = 0, forward_s = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i == 0 || blocks[i].steps != blocks[i - 1].steps) out.blocks.push_back({0, blocks[i].names});
    ++out.blocks.back().count;
    recomputed_s += blocks[i].recomputed_s;
    forward_s += blocks[i].forward_s;
  }
  if (forward_s > 0) out.forward_fraction = recomputed_s / forward_s;
  return out;
}

} // namespace

std::vector<StageRecomputation> recomputation_of(const Programs& programs) {
  std::vector<StageRecomputation> out;
  for (std::size_t stage = 0; stage < programs.chosen.size(); ++stage)
    if (!programs.chosen[stage].empty()) out.push_back(of_stage(static_cast<int>(stage), programs.chosen[stage]));
  return out;
}

std::string to_text(const StageRecomputation& recomputation) {
  std::string out = text("stage {}: ", recomputation.stage);
  for (const StageRecomputation::Blocks& blocks : recomputation.blocks) {
    const bool one = blocks.count == 1;
    std::string names;
    for (const std::string& name : blocks.steps) names += (names.empty() ? " " : ", ") + name;
    const char* const keep = one ? "keeps all" : "keep all";
    const char* const recompute = one ? "recomputes" : "recompute";
    out += text("{} {}{}; ", report::counted_text(blocks.count, "block"), names.empty() ? keep : recompute, names);
  }
  return out +
         text("{} of its blocks' forward by the cost model", report::percent_text(recomputation.forward_fraction));
}

} // namespace triax::train
