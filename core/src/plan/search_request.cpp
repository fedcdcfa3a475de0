// SPDX-License-Identifier: Apache-2.0
#include "plan/search_request.hpp"

#include "plugin/option_text.hpp"
#include "triax/text.hpp"

namespace triax::plan {

namespace {

std::string quoted(const std::string& word) {
  return "\"" + word + "\"";
}
std::string word(bool value) {
  return value ? "true" : "false";
}

} // namespace

bool splits_positions(const TrainingPlan& plan) {
  return plan.sequence && plan.tensor > 1;
}

bool scatters(const config::RunConfig& run, const TrainingPlan& plan) {
  return run.parallel.scatter_gather && !plan.sequence;
}

config::RunConfig run_of(const SearchRequest& request, const TrainingPlan& plan, const Split& split) {
  config::RunConfig out = request.run;
  out.parallel.pipeline = plan.pipeline;
  out.parallel.tensor = plan.tensor;
  out.parallel.data = plan.data;
  out.parallel.chunks = plan.chunks;
  out.parallel.split = split;
  out.parallel.is_split_automatic = false;
  out.parallel.sequence = plan.sequence;
  out.parallel.scatter_gather = scatters(request.run, plan);
  out.batch.micro = plan.micro;
  out.memory.recompute = {std::string(name_of(plan.recompute))};
  if (out.memory.recompute_layers.is_list()) out.memory.recompute_layers = {1}; // the plan may have other stages
  out.optimizer_core.shard = request.space.shards.at(static_cast<std::size_t>(plan.shard));
  out.schedule = request.schedules.at(static_cast<std::size_t>(plan.schedule));
  return out;
}

std::vector<PlanKey> keys_of(const SearchRequest& request, const TrainingPlan& plan, const Split& split) {
  const config::RunConfig& run = request.run;
  std::vector<PlanKey> out = {{"parallel", "pipeline", text("{}", plan.pipeline)},
                              {"parallel", "tensor", text("{}", plan.tensor)},
                              {"parallel", "data", text("{}", plan.data)},
                              {"parallel", "chunks", text("{}", plan.chunks)},
                              {"parallel", "sequence", word(plan.sequence)}};
  if (!split.empty() || !run.parallel.split.empty() || run.parallel.is_split_automatic)
    out.push_back({"parallel", "split", plugin::to_toml(OptionValue(split))});
  if (run.parallel.scatter_gather && !scatters(run, plan)) out.push_back({"parallel", "scatter_gather", "false"});
  out.push_back({"batch", "micro", text("{}", plan.micro)});
  out.push_back({"memory", "recompute", quoted(std::string(name_of(plan.recompute)))});
  if (run.memory.recompute_layers.is_list()) out.push_back({"memory", "recompute_layers", "1"});
  out.push_back({"schedule", "plugin", quoted(request.space.schedules.at(static_cast<std::size_t>(plan.schedule)))});
  out.push_back({"optimizer", "shard", quoted(request.space.shards.at(static_cast<std::size_t>(plan.shard)))});
  return out;
}

} // namespace triax::plan
