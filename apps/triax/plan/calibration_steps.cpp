// SPDX-License-Identifier: Apache-2.0
#include "plan/calibration_steps.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "plan/plan_costs.hpp"
#include "plugin/loader.hpp"
#include "report/metrics_reader.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"
#include "triax/precision.hpp"

namespace triax::app {

namespace {

constexpr int kLayers = 4;
constexpr std::int64_t kBatch = 8;
constexpr int kSteps = 8, kWarmup = 3;

CalibrationStep step_of(std::string name, int p, int t, int d, std::int64_t micro,
                        Recompute recompute = Recompute::none) {
  CalibrationStep out{.name = std::move(name), .plan = {}};
  out.plan.pipeline = p;
  out.plan.tensor = t;
  out.plan.data = d;
  out.plan.micro = micro;
  out.plan.recompute = recompute;
  return out;
}

std::string step_toml(const CalibrationStep& step, const CalibrationSizes& sizes, const std::string& plugins) {
  const TrainingPlan& plan = step.plan;
  return text("[run]\ndir = \"run\"\n[model]\nplugin = \"model-gpt\"\nlayers = {}\nhidden = {}\nheads = {}\n", kLayers,
              sizes.hidden * (step.is_wide ? 2 : 1), sizes.heads) +
         text("sequence = {}\ndropout = 0.1\n[parallel]\npipeline = {}\ntensor = {}\ndata = {}\nchunks = {}\n",
              sizes.sequence, plan.pipeline, plan.tensor, plan.data, plan.chunks) +
         text("[batch]\nglobal = {}\nmicro = {}\n[memory]\nrecompute = \"{}\"\n[schedule]\nplugin = \"{}\"\n", kBatch,
              plan.micro, name_of(plan.recompute), step.scheduler) +
         "[data]\npath = \"corpus\"\n" + plugins;
}

} // namespace

std::vector<CalibrationStep> calibration_steps(int cores) {
  std::vector<CalibrationStep> all = {step_of("one rank", 1, 1, 1, 2),
                                      step_of("microbatch 8", 1, 1, 1, 8),
                                      step_of("recomputation", 1, 1, 1, 2, Recompute::full),
                                      step_of("twice the width", 1, 1, 1, 2),
                                      step_of("p = 2", 2, 1, 1, 1),
                                      step_of("p = 2, v = 2", 2, 1, 1, 1),
                                      step_of("t = 2", 1, 2, 1, 2),
                                      step_of("d = 2", 1, 1, 2, 2)};
  all[3].is_wide = true;
  all[5].plan.chunks = 2;
  all[5].scheduler = "sched-interleaved";
  std::erase_if(all, [cores](const CalibrationStep& step) { return step.ranks() > cores; });
  return all;
}

std::string plugin_tables(const config::LoadResult& run) {
  const std::set<std::string> kTables = {"plugins",     "kernels",       "optimizer", "comm",
                                         "comm.tensor", "comm.pipeline", "comm.data"};
  const std::set<std::string> kLeftOut = {"optimizer.shard", "optimizer.prefetch", "kernels.threads"};
  std::map<std::string, std::string> tables;
  for (const config::ResolvedValue& value : run.values) {
    const std::size_t dot = value.key.rfind('.');
    const std::string of = value.key.substr(0, dot);
    const bool is_set = value.origin != "default" && value.origin != "derived";
    if (!is_set || !kTables.contains(of) || kLeftOut.contains(value.key)) continue;
    tables[of] += text("{} = {}\n", value.key.substr(dot + 1), value.value);
  }
  if (plugin::find_option(*run.run->kernels.library, "threads")) tables["kernels"] += "threads = 1\n"; // as of a device
  std::string out;
  for (const auto& [table, keys] : tables) out += text("[{}]\n{}", table, keys);
  return out + text("[train]\nsteps = {}\nprecision = \"{}\"\n", kSteps, precision_name(run.run->train.compute));
}

void measure_step(CalibrationStep& step, const CalibrationSizes& sizes, const std::string& plugins,
                  const std::filesystem::path& folder, CalibrationPrograms& programs) {
  const std::filesystem::path file = folder / "step.toml";
  std::ofstream(file) << step_toml(step, sizes, plugins);
  std::filesystem::remove_all(folder / "run");
  step.loaded = std::make_shared<config::LoadResult>(config::load(file, {}, {}, config::Purpose::plan));
  if (!step.loaded->run) {
    std::string all;
    for (const config::Diagnostic& refusal : step.loaded->refusals) all += "\n  " + refusal.text;
    throw Error(text("the run that --calibrate measures is refused:{}", all), step.name,
                "change these keys in RUN.toml, or with --set");
  }
  programs.run(text("steps, {}", step.name), {"train", file.string()});
  std::vector<double> times_ms;
  for (const report::StepRecord& record : report::read_metrics(step.loaded->run->log.metrics).records)
    if (record.step > kWarmup) times_ms.push_back(record.step_ms);
  if (times_ms.empty()) {
    const std::string wrote = step.loaded->run->log.metrics.string();
    throw Error(text("the run wrote no step times to {}", wrote), step.name,
                "check that its folder has free space, or set TMPDIR to another folder, and measure again");
  }
  std::ranges::sort(times_ms);
  step.measured_s = times_ms[times_ms.size() / 2] * 1e-3;
}

double predict_step_s(const CalibrationStep& step, const cost::Cluster& cluster) {
  const config::RunConfig& run = step.loaded->run.value();
  PlanSpace space;
  space.ranks = step.ranks();
  space.batch = kBatch;
  space.blocks = kLayers;
  space.devices_per_node = cluster.node.devices;
  space.pipeline = {step.plan.pipeline};
  space.tensor = {step.plan.tensor};
  space.data = {step.plan.data};
  space.chunks = {step.plan.chunks};
  space.micro = {step.plan.micro};
  space.recompute = {step.plan.recompute};
  space.sequence = {false};
  space.schedules = {run.schedule.name};
  space.shards = {"none"};
  const plan::SearchRequest request{run, cluster, space, {run.schedule}, std::numeric_limits<std::uint64_t>::max(), 1};
  const std::optional<PlanTime> time = plan::PlanCosts(request, *cost::code_named("triax"), null_log()).time(step.plan);
  if (!time)
    throw Error("the plugins of the run refuse this step", step.name,
                "name other plugins, such as --set kernels.plugin=kernels-cpu --set comm.plugin=comm-local");
  return time->step();
}

} // namespace triax::app
