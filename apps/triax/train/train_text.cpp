// SPDX-License-Identifier: Apache-2.0
#include "train/train_text.hpp"

#include <algorithm>
#include <set>

#include "common/printable_line.hpp"
#include "common/resolved_split.hpp"
#include "common/shell_command.hpp"
#include "config/core_keys.hpp"
#include "config/run_files.hpp"
#include "os/scratch_file.hpp"
#include "os/signal_name.hpp"
#include "report/units.hpp"
#include "train/host_kernels.hpp"
#include "train/offload_file.hpp"
#include "train/plugins.hpp"

namespace triax::app {

namespace fs = std::filesystem;

namespace {

/// The plugin's name; with its file if it is not the engine's own.
std::string plugin_text(const config::PluginChoice& choice) {
  const fs::path& file = choice.library->file;
  std::error_code none;
  const bool own = fs::equivalent(file.parent_path(), plugin::core_folder() / "triax" / "plugins", none);
  return own ? choice.name : text("{} ({})", choice.name, shown(file));
}

/// The communicators that the axes of this run use; with one rank, those that they would use.
std::string communicators(const config::RunConfig& run) {
  const Layout layout = train::layout_of(run);
  std::set<std::string> used, named;
  for (const auto& [axis, choice] : run.comm) {
    named.insert(plugin_text(choice));
    if (layout.size(axis) > 1) used.insert(plugin_text(choice));
  }
  std::string out;
  for (const std::string& name : used.empty() ? named : used) out += (out.empty() ? "" : " ") + name;
  return out;
}

/// "metrics in runs/tiny/metrics.jsonl", and what is missing.
std::string metrics_text(const train::LoopResult& result) {
  const bool none = result.records > 0 && result.missing.records == result.records;
  const std::string where = none ? "no metrics" : "metrics in " + shown(result.metrics);
  const std::string missing = report::to_text(result.missing, result.records);
  return missing.empty() ? where : text("{}; missing: {}", where, missing);
}

std::string paths_text(const data::Corpora& corpora) {
  std::string out;
  for (const fs::path& path : corpora.paths) out += (out.empty() ? "" : ", ") + shown(path);
  return out;
}

/// One note per plugin whose file shadows another one of its name.
std::vector<std::string> shadowing_notes(const config::RunConfig& run) {
  std::vector<const config::PluginChoice*> choices = {&run.model, &run.schedule, &run.kernels, &run.optimizer};
  for (const auto& [axis, choice] : run.comm) choices.push_back(&choice);
  std::vector<std::string> out;
  for (const config::PluginChoice* choice : choices) {
    const std::string note = shadowing_note(*choice);
    if (!note.empty() && std::ranges::find(out, note) == out.end()) out.push_back(note);
  }
  return out;
}

/// Keys of updates on the host, where the kernel set of the run makes them.
void add_host_update_notes(const config::RunConfig& run, std::vector<std::string>& out) {
  const config::RunConfig::MemoryKeys& memory = run.memory;
  const config::RunConfig::MemoryKeys unset;
  const std::string why = memory.offload == "optimizer" ? text("kernels.plugin \"{}\"", run.kernels.name)
                                                        : text("memory.offload = \"{}\"", memory.offload);
  if (memory.offload_gradients != unset.offload_gradients)
    out.push_back(text("memory.offload_gradients = \"{}\" has no effect with {}", memory.offload_gradients, why));
  if (memory.offload_kernels != unset.offload_kernels)
    out.push_back(
        text("memory.offload_kernels = \"{}\" has no effect with {}", printable_line(memory.offload_kernels), why));
}

/// Delayed updates are refused where no host updates.
void add_delay_notes(const config::RunConfig& run, std::vector<std::string>& out) {
  const config::RunConfig::MemoryKeys& memory = run.memory;
  if (!memory.offload_delayed_update &&
      memory.offload_warmup_steps != config::RunConfig::MemoryKeys().offload_warmup_steps)
    out.push_back(text("memory.offload_warmup_steps = {} has no effect with memory.offload_delayed_update = false",
                       memory.offload_warmup_steps));
  if (memory.offload_delayed_update &&
      run.train.steps <= memory.offload_warmup_steps + 1) // the last one is not delayed
    out.push_back(
        text("memory.offload_delayed_update = true has no effect with train.steps = {} and "
             "memory.offload_warmup_steps = {}: no update is delayed",
             run.train.steps, memory.offload_warmup_steps));
}

/// An evaluation has no state.
std::vector<std::string> offload_notes(const config::RunConfig& run, std::optional<DeviceKind> device) {
  const config::RunConfig::MemoryKeys& memory = run.memory;
  std::vector<std::string> out;
  if (run.evaluates) return out;
  const bool host_updates = train::updates_on_host(run, device.value_or(DeviceKind::cuda));
  if (memory.offload == "optimizer" && !host_updates)
    out.push_back(
        text("memory.offload = \"optimizer\" has no effect with kernels.plugin \"{}\": the optimizer's state is "
             "in the memory of the host, and its cores update the weights",
             run.kernels.name));
  if (memory.offload == "disk" && os::is_in_memory(train::offload_folder(run)))
    out.push_back(
        text("memory.offload = \"disk\" saves nothing in {}, because that file system is in memory; choose "
             "another folder with memory.offload_path",
             shown(train::offload_folder(run))));
  if (memory.offload != "disk" && !memory.offload_path.empty())
    out.push_back(text("memory.offload_path = \"{}\" has no effect with memory.offload = \"{}\"",
                       printable_line(memory.offload_path.string()), memory.offload));
  if (memory.offload != "disk" && !host_updates &&
      memory.offload_buffer_bytes != config::RunConfig::MemoryKeys().offload_buffer_bytes)
    out.push_back(text("memory.offload_buffer_bytes = {} has no effect with memory.offload = \"{}\"",
                       memory.offload_buffer_bytes, memory.offload));
  if (!host_updates) add_host_update_notes(run, out);
  add_delay_notes(run, out);
  return out;
}

/// Keys that apply to what stages with "full" keep.
std::vector<std::string> kept_input_notes(const config::RunConfig& run, std::optional<DeviceKind> device) {
  const config::RunConfig::MemoryKeys& memory = run.memory;
  const bool recomputes = memory.recompute.any("full");
  std::vector<std::string> out;
  if (!recomputes && !memory.recompute_layers.all(1))
    out.push_back(text("memory.recompute_layers = {} has no effect with memory.recompute = {}",
                       to_toml(memory.recompute_layers), to_toml(memory.recompute)));
  if (memory.partition_activations && (!recomputes || run.parallel.tensor == 1))
    out.push_back(text("memory.partition_activations = true has no effect with {}",
                       recomputes ? "parallel.tensor = 1" : text("memory.recompute = {}", to_toml(memory.recompute))));
  else if (memory.partition_activations && run.parallel.sequence)
    out.emplace_back(
        "memory.partition_activations = true saves nothing with parallel.sequence = true: each tensor rank keeps its "
        "positions only");
  if (memory.offload_activations && !recomputes)
    out.push_back(
        text("memory.offload_activations = true has no effect with memory.recompute = {}", to_toml(memory.recompute)));
  else if (memory.offload_activations && device == DeviceKind::host)
    out.push_back(
        text("memory.offload_activations = true has no effect with kernels.plugin \"{}\": the inputs of recomputed "
             "blocks are in the memory of the host",
             run.kernels.name));
  return out;
}

/// "examples/run.toml: 10.8 M parameters, pipeline 2 x tensor 2 x data 1; model-gpt, ...; 4 ranks as processes, ..."
std::string start_line(const config::RunConfig& run, const train::Preflight& checked,
                       const train::Placement& placement) {
  const auto& parallel = run.parallel;
  return text("{}: {} parameters, pipeline {} x tensor {} x data {}; {}, {}, {}, {}, {}; {}; {} {}", shown(run.file),
              report::count_text(static_cast<double>(checked.parameters)), parallel.pipeline, parallel.tensor,
              parallel.data, plugin_text(run.model), plugin_text(run.kernels), plugin_text(run.optimizer),
              plugin_text(run.schedule), communicators(run), train::to_text(placement, checked.device, checked.threads),
              run.evaluates ? "data" : "folder", run.evaluates ? paths_text(run.data.validation) : shown(run.folder));
}

} // namespace

std::string shown(const fs::path& path) {
  return printable_line(from_here(path).string());
}

std::string shadowing_note(const config::PluginChoice& choice) {
  std::string hidden;
  for (const fs::path& file : choice.shadowed) hidden += (hidden.empty() ? "" : " and ") + file.string();
  if (hidden.empty()) return {};
  return text("{}.plugin \"{}\" is {}, which shadows {}", choice.named_in, choice.name, choice.library->file, hidden);
}

std::vector<std::string> notes(const config::RunConfig& run, std::optional<DeviceKind> device) {
  std::vector<std::string> out = shadowing_notes(run);
  if (!run.evaluates && run.lr.warmup_steps > run.train.steps) // happens when a run is tried for a few steps
    out.push_back(text(
        "lr.warmup_steps = {} is more than train.steps = {}: the run ends during the warm-up, below optimizer.lr = {}",
        run.lr.warmup_steps, run.train.steps, run.optimizer_core.lr));
  if (run.optimizer_core.shard != "none" && run.parallel.data == 1)
    out.push_back(text("optimizer.shard = \"{}\" has no effect with parallel.data = 1", run.optimizer_core.shard));
  if (run.optimizer_core.shard != "parameters" && run.optimizer_core.prefetch != 1)
    out.push_back(text("optimizer.prefetch = {} has no effect with optimizer.shard = \"{}\"",
                       run.optimizer_core.prefetch, run.optimizer_core.shard));
  const bool is_resolved = run.file.filename() == config::kResolvedFile; // has numbers for "auto"
  if (!run.parallel.split_cluster.empty() && !run.parallel.is_split_automatic && !is_resolved &&
      !run.memory.recompute.any("optimal"))
    out.push_back(
        text("parallel.split_cluster = \"{}\" has no effect without parallel.split = \"{}\" or "
             "memory.recompute = \"optimal\"",
             printable_line(run.parallel.split_cluster.string()), config::kAutomaticSplit));
  if (run.parallel.sequence && run.parallel.tensor == 1)
    out.emplace_back("parallel.sequence = true has no effect with parallel.tensor = 1");
  if (run.memory.activation_budget > 0 && !run.memory.recompute.any("optimal"))
    out.push_back(text("memory.activation_budget = {} has no effect with memory.recompute = {}",
                       run.values.at("memory.activation_budget"), to_toml(run.memory.recompute)));
  for (const std::string& note : kept_input_notes(run, device)) out.push_back(note);
  for (const std::string& note : offload_notes(run, device)) out.push_back(note);
  return out;
}

void log_start(Log& log, const config::RunConfig& run, const train::Preflight& checked,
               const train::Placement& placement) {
  log.info("{}", start_line(run, checked, placement));
  if (const std::string split = split_text(run); !split.empty()) log.info("{}", split);
  for (const train::StageRecomputation& of : checked.recomputation) log.info("recomputation of {}", to_text(of));
  for (const std::string& note : notes(run, checked.device)) log.warn("{}", note);
}

std::string result_line(const config::RunConfig& run, const train::LoopResult& result) {
  const std::string steps = text("{} step{}", result.steps, result.steps == 1 ? "" : "s");
  const std::string speed = report::count_text(result.tokens_per_s) + " tokens/s";
  if (!result.has_loss()) return text("trained {}, all of them skipped, {}, {}", steps, speed, metrics_text(result));
  // A mean of logarithms of probabilities is 0 only if no kernel computed it.
  if (result.steps > 0 && result.first_loss == 0 && result.last_loss == 0)
    return text("ran {}: {} does not compute, so all losses are 0; {}, {}", steps, run.kernels.name, speed,
                metrics_text(result));
  const std::string skipped = result.skipped > 0 ? text(", {} of them skipped", result.skipped) : "";
  std::string line = text("trained {}{}: loss {} to {}", steps, skipped, report::decimals_text(result.first_loss, 4),
                          report::decimals_text(result.last_loss, 4));
  if (result.eval_loss) line += text(", held-out loss {}", report::decimals_text(*result.eval_loss, 4));
  return line + text(", {}, {}", speed, metrics_text(result));
}

std::string complete_line(const config::RunConfig& run, const train::LoopResult& result) {
  const std::string done = result.last_step > run.train.steps
                               ? text("step {} is done, but train.steps = {}", result.last_step, run.train.steps)
                               : text("step {} of {} is done", result.last_step, run.train.steps);
  const std::string evaluated =
      result.eval_loss ? text(", held-out loss {}", report::decimals_text(*result.eval_loss, 4)) : "";
  return text("complete: {}{}, saved in {}; nothing to train", done, evaluated, shown(result.checkpoint));
}

std::string stop_line(const config::RunConfig& run, const train::LoopResult& result) {
  const std::string why = result.out_of_time ? "train.time_limit" : signal_name(result.signal);
  if (result.steps == 0) return text("stopped by {} before the first step ended", why);
  const std::string saved = result.is_saved() ? text("saved in {}; ", shown(result.checkpoint))
                            : !result.checkpoint.empty()
                                ? text("not saved, and the newest checkpoint is {}; ", shown(result.checkpoint))
                                : "";
  return text("stopped by {} after step {} of {}; {}{}", why, result.last_step, run.train.steps, saved,
              metrics_text(result));
}

std::string next_line(const config::RunConfig& run, const train::LoopResult& result, const std::string& file,
                      const std::vector<config::Override>& overrides, int max_restarts) {
  const bool saved = !result.checkpoint.empty(),
             more = saved && (result.last_step < run.train.steps || result.owes_evaluation);
  const bool again = !more && !result.is_saved() && result.missing.checkpoints > 0;
  const bool like_a_flag = file.starts_with('-');
  std::string line =
      more    ? "next: to continue: "
      : again ? text("next: to train again what is not saved, from {}: ", saved ? "the newest checkpoint" : "step 1")
      : saved ? "next: to train longer, from this step: "
              : "next: to train longer, from step 1 (nothing is saved): ";
  line += program() + " train";
  if (!like_a_flag) line += " " + shell_word(file);
  if (max_restarts > 0) line += text(" --max-restarts {}", max_restarts);
  const bool elsewhere = !saved && !again;
  for (const config::Override& override : overrides) {
    const bool changes = (!more && !again && override.key == "train.steps") ||
                         (!again && override.key == "train.stop_at") || override.key == "checkpoint.resume" ||
                         (elsewhere && (override.key == "run.dir" || override.key == "log.metrics"));
    if (!changes) line += " --set " + shell_word(override.key + "=" + override.value);
  }
  if (!more && !again)
    line += text(" --set train.steps={}", std::max(result.last_step, run.train.steps) + run.train.steps);
  // Flags that are left out would leave the TOML's value, such as "never".
  const auto is_in_toml = [&](const char* key, bool has_value) {
    const bool is_flag = std::ranges::find(overrides, key, &config::Override::key) != overrides.end();
    return is_flag ? run.replaced.contains(key) : has_value;
  };
  if (saved && is_in_toml("checkpoint.resume", run.checkpoint.resume == "never"))
    line += " --set checkpoint.resume=auto";
  if (!again && is_in_toml("train.stop_at", run.train.stop_at > 0)) line += " --set train.stop_at=0";
  const fs::path longer = run.folder.parent_path() / (run.folder.filename().string() + "-longer");
  if (elsewhere) line += " --set " + shell_word("run.dir=" + from_here(longer).string());
  return like_a_flag ? line + " -- " + shell_word(file) : line;
}

} // namespace triax::app
