// SPDX-License-Identifier: Apache-2.0
#include "config/load.hpp"

#include <algorithm>

#include "config/derive.hpp"
#include "config/diagnostics.hpp"
#include "config/merge.hpp"
#include "config/resolver.hpp"

namespace triax::config {

namespace {

using Path = std::filesystem::path;
using Int = std::int64_t;

/// The plugin of [comm], for every axis that has no table.
std::map<std::string, PluginChoice> plugins_by_axis(const std::map<std::string, PluginChoice>& plugins) {
  std::map<std::string, PluginChoice> out;
  for (const char* axis : {"tensor", "data", "pipeline"}) {
    const auto own = plugins.find(std::string("comm.") + axis);
    out[axis] = own != plugins.end() ? own->second : plugins.at("comm");
  }
  return out;
}

/// The keys that have a value. The errors of the others are already reported.
LaunchKeys launch_keys(const Values& values) {
  LaunchKeys out;
  if (const auto* interface = values.find<std::string>("launch.interface")) out.interface = *interface;
  if (const auto* port = values.find<Int>("launch.port")) out.port = static_cast<int>(*port);
  if (const auto* timeout = values.find<double>("launch.start_timeout_s")) out.start_timeout_s = *timeout;
  if (const auto* file = values.find<Path>("launch.token_file")) out.token_file = *file;
  return out;
}

struct Precision {
  DType compute = DType::f32, master = DType::f32;
};
Precision precision_of(const std::string& name) {
  if (name == "fp64") return {DType::f64, DType::f64};
  if (name == kScaledPrecision) return {DType::f16, DType::f32};
  return {name == "bf16" ? DType::bf16 : DType::f32, DType::f32};
}

/// Empty except in fp16, where derive() has set the values.
std::optional<LossScaleKeys> loss_scale(const Values& values) {
  const auto* initial = values.find<double>("loss_scale.initial");
  if (!initial) return std::nullopt;
  LossScaleKeys out;
  out.initial = *initial;
  out.constant = values.get<bool>("loss_scale.constant");
  if (out.constant) return out;
  out.min = values.get<double>("loss_scale.min");
  out.window_steps = values.get<Int>("loss_scale.window_steps");
  out.hysteresis = values.get<Int>("loss_scale.hysteresis");
  return out;
}

RunConfig run_config(const Path& file, Resolved& resolved) {
  const Values& values = resolved.values;
  const auto integer = [&](const char* key) { return values.get<Int>(key); };
  const auto size = [&](const char* key) { return static_cast<int>(values.get<Int>(key)); };
  const auto number = [&](const char* key) { return values.get<double>(key); };
  RunConfig run;
  run.file = file;
  run.folder = values.get<Path>("run.dir");
  run.comm = plugins_by_axis(resolved.plugins);
  run.model = std::move(resolved.plugins.at("model"));
  run.schedule = std::move(resolved.plugins.at("schedule"));
  run.kernels = std::move(resolved.plugins.at("kernels"));
  run.optimizer = std::move(resolved.plugins.at("optimizer"));
  run.parallel = {.pipeline = size("parallel.pipeline"),
                  .tensor = size("parallel.tensor"),
                  .data = size("parallel.data"),
                  .chunks = size("parallel.chunks"),
                  .split = values.get<std::vector<Int>>("parallel.split"),
                  .scatter_gather = values.get<bool>("parallel.scatter_gather")};
  run.batch = {.global = integer("batch.global"), .micro = integer("batch.micro")};
  run.optimizer_core = {.lr = number("optimizer.lr"), .weight_decay = number("optimizer.weight_decay")};
  run.lr = {.decay = values.get<std::string>("lr.decay"),
            .warmup_steps = integer("lr.warmup_steps"),
            .min = number("lr.min")};
  const Precision precision = precision_of(values.get<std::string>("train.precision"));
  run.train = {.steps = integer("train.steps"),
               .seed = static_cast<std::uint64_t>(integer("train.seed")),
               .clip_grad = number("train.clip_grad"),
               .compute = precision.compute,
               .master = precision.master,
               .cuda_graph = values.get<bool>("train.cuda_graph"),
               .stall_timeout_s = number("train.stall_timeout_s"),
               .loss_scale = loss_scale(values)};
  run.data = {.training = corpora_of(values, kTraining), .validation = corpora_of(values, kValidation)};
  if (const Int* vocab = values.find<Int>("model.vocab")) run.vocab = *vocab; // not needed for Purpose::schedule
  run.eval = {.every = integer("eval.every"), .batches = integer("eval.batches")};
  run.log = {.metrics = values.get<Path>("log.metrics"),
             .every = integer("log.every"),
             .level = values.get<std::string>("log.level"),
             .timeline = integer("log.timeline")};
  run.launch = launch_keys(values);
  return run;
}

/// A run can be planned without its data: removes corpora that are not on this machine.
void leave_out_absent_data(RunConfig& run, std::vector<std::string>& unchecked) {
  if (run.data.training.paths.empty()) unchecked.emplace_back("data: data.path is not given");
  for (data::Corpora* corpora : {&run.data.training, &run.data.validation}) {
    const auto absent = std::ranges::find_if(corpora->paths, is_absent);
    if (absent == corpora->paths.end()) continue;
    unchecked.push_back(text("data: {} names {}, and {}.bin and .idx do not exist", corpora->key, *absent, *absent));
    *corpora = {{}, {}, corpora->key};
  }
}

} // namespace

LoadResult load(const Path& file, const std::vector<Override>& overrides, std::optional<int> world, Purpose purpose,
                plugin::FirstLoad first_load) {
  LoadResult out;
  Diagnostics refusals;
  Layers layers = read_layers(file, overrides, refusals);
  if (refusals.empty()) {
    Resolved resolved = Resolver(layers, refusals, purpose, first_load).resolve();
    derive(resolved.values, file, {world, purpose}, refusals);
    cross_check(resolved.values, purpose, refusals);
    out.values = resolved.values.list();
    out.launch = launch_keys(resolved.values);
    out.dropped = std::move(layers.dropped);
    out.unchecked = std::move(resolved.unchecked);
    if (refusals.empty()) out.run = run_config(file, resolved);
    if (out.run && purpose == Purpose::plan) leave_out_absent_data(*out.run, out.unchecked);
  }
  out.refusals = refusals.sorted();
  return out;
}

} // namespace triax::config
