// SPDX-License-Identifier: Apache-2.0
#include "config/load.hpp"

#include <algorithm>

#include "config/core_keys.hpp"
#include "config/derive.hpp"
#include "config/diagnostics.hpp"
#include "config/merge.hpp"
#include "config/resolver.hpp"

namespace triax::config {

namespace {

using Path = std::filesystem::path;

/// The plugin of [comm], for every axis that has no table.
std::map<std::string, PluginChoice> plugins_by_axis(const std::map<std::string, PluginChoice>& plugins) {
  std::map<std::string, PluginChoice> out;
  for (const char* axis : {"tensor", "data", "pipeline"}) {
    const auto own = plugins.find(std::string("comm.") + axis);
    out[axis] = own != plugins.end() ? own->second : plugins.at("comm");
  }
  return out;
}

/// Sets the members of the keys that have a value, of one table or of all.
void assign(RunConfig& run, const Values& values, std::string_view only = {}) {
  for (const CoreTable& table : core_tables()) {
    if (!only.empty() && table.name != only) continue;
    for (const CoreKey& key : table.keys)
      if (const OptionValue* value = values.find(text("{}.{}", table.name, key.option.name)); value && key.assign)
        key.assign(run, *value);
  }
}

/// The errors of keys without a value are already reported.
LaunchKeys launch_keys(const Values& values) {
  RunConfig run;
  assign(run, values, "launch");
  return run.launch;
}

RunConfig run_config(const Path& file, Resolved& resolved) {
  RunConfig run;
  run.file = file;
  run.comm = plugins_by_axis(resolved.plugins);
  run.model = std::move(resolved.plugins.at("model"));
  run.schedule = std::move(resolved.plugins.at("schedule"));
  run.kernels = std::move(resolved.plugins.at("kernels"));
  run.optimizer = std::move(resolved.plugins.at("optimizer"));
  if (const auto host = resolved.plugins.find("memory.offload_kernels"); host != resolved.plugins.end())
    run.memory.host_kernels = std::move(host->second);
  assign(run, resolved.values);
  run.data = {.training = corpora_of(resolved.values, kTraining),
              .validation = corpora_of(resolved.values, kValidation)};
  return run;
}

/// Turns off settings that concern training only.
void set_to_evaluate(RunConfig& run) {
  run.evaluates = true;
  run.data.validation.in_full = run.eval.batches == 0;
  run.data.training = {{}, {}, run.data.training.key};
  run.eval.every = 1;
  run.eval.sample.clear();
  run.checkpoint = {};
  run.log.timeline = 0;
  run.train.cuda_graph = false;
}

void set_to_generate(RunConfig& run) {
  set_to_evaluate(run);
  run.eval.every = 0;
  run.data.validation = {{}, {}, run.data.validation.key};
  run.generate.emplace();
}

/// A run can be planned without its data: removes corpora that are not on this machine.
void leave_out_absent_data(RunConfig& run, std::vector<std::string>& unchecked) {
  if (run.data.training.paths.empty()) unchecked.emplace_back("data: data.path is not given");
  for (data::Corpora* corpora : {&run.data.training, &run.data.validation}) {
    const auto absent = std::ranges::find_if(corpora->paths, is_absent);
    if (absent == corpora->paths.end()) continue;
    unchecked.push_back(text("data: {} names {}, but {}.bin and .idx do not exist", corpora->key, *absent, *absent));
    *corpora = {{}, {}, corpora->key};
  }
}

} // namespace

namespace {

LoadResult load(Layers layers, const Path& file, const Intent& intent, plugin::FirstLoad first_load,
                Diagnostics& refusals) {
  LoadResult out;
  const Purpose purpose = intent.purpose;
  if (refusals.empty()) {
    Resolved resolved = Resolver(layers, refusals, purpose, first_load).resolve();
    derive(resolved.values, file, intent, refusals);
    cross_check(resolved.values, purpose, refusals);
    out.values = resolved.values.list();
    out.launch = launch_keys(resolved.values);
    out.dropped = std::move(layers.dropped);
    out.unchecked = std::move(resolved.unchecked);
    if (refusals.empty()) out.run = run_config(file, resolved);
    if (out.run) {
      for (const ResolvedValue& value : out.values) out.run->values[value.key] = value.portable;
      out.run->replaced = std::move(layers.replaced);
    }
    if (out.run && purpose == Purpose::evaluate) set_to_evaluate(*out.run);
    if (out.run && purpose == Purpose::generate) set_to_generate(*out.run);
    if (out.run && purpose == Purpose::plan) leave_out_absent_data(*out.run, out.unchecked);
  }
  out.refusals = refusals.sorted();
  return out;
}

} // namespace

LoadResult load(const Path& file, const std::vector<Override>& overrides, std::optional<int> world, Purpose purpose,
                plugin::FirstLoad first_load) {
  Diagnostics refusals;
  Layers layers = read_layers(file, overrides, refusals);
  return load(std::move(layers), file, {world, purpose}, first_load, refusals);
}

LoadResult load(const TomlText& toml, const std::vector<Override>& overrides, std::optional<int> world, Purpose purpose,
                plugin::FirstLoad first_load) {
  Diagnostics refusals;
  Layers layers = read_layers(toml, overrides, refusals);
  return load(std::move(layers), toml.shown, {world, purpose}, first_load, refusals);
}

} // namespace triax::config
