// SPDX-License-Identifier: Apache-2.0
// Creates programs from rows, and a rank's state from programs.
#include "train/rank_setup.hpp"

#include <algorithm>
#include <utility>

#include "executor/recompute_groups.hpp"
#include "schedule/lower.hpp"
#include "schedule/verify.hpp"

namespace triax::train {

namespace {

std::vector<executor::StageLayers> split_of(const config::RunConfig& run, const Model& model) {
  TRIAX_REQUIRE(!run.parallel.is_split_automatic || !run.parallel.split.empty(),
                "parallel.split = \"auto\" has no numbers of blocks yet");
  return executor::split_layers(model, pipeline_shape(run).stages(), run.parallel.split);
}

/// Tensor ranks that divide what recomputed blocks keep. With sequence parallelism they have parts already.
int kept_parts(const config::RunConfig& run, const LayerContext& context) {
  return run.memory.partition_activations && !context.sequence_parallel ? context.tensor_size() : 1;
}

/// Blocks of a group of the rank's stages with the automatic number. It depends on the rank's stages only: tensor ranks
/// must repeat the same collectives.
int automatic_group(const config::RunConfig& run, const Model& model, const LayerContext& context,
                    const schedule::Program& training, bool on_host) {
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  const std::vector<executor::StageLayers> split = split_of(run, model);
  std::vector<executor::RecomputedStage> stages;
  for (const int stage : training.stages()) {
    if (run.memory.recompute_of(stage) != Recompute::full || run.memory.recompute_layers.of(stage) != 0) continue;
    const executor::StageLayers& of = split[static_cast<std::size_t>(stage)];
    const int begin = std::max(of.first, blocks.begin), end = std::min(of.first + of.count, blocks.end);
    stages.push_back({std::max(end - begin, 0), training.slots(stage, schedule::Pool::stash_i)});
  }
  if (stages.empty()) return 1;
  const std::unique_ptr<Layer> block = model.layer(blocks.begin, context);
  return executor::best_group_size(*block, stages, kept_parts(run, context), on_host);
}

/// The recomputation of each stage of the pipeline; the groups of those on other ranks are not used.
std::vector<executor::StageRecompute> recompute_of(const config::RunConfig& run, const Model& model,
                                                   const LayerContext& context, const schedule::Program& training,
                                                   const Programs& programs, bool on_host) {
  const int automatic = automatic_group(run, model, context, training, on_host);
  std::vector<executor::StageRecompute> out;
  out.reserve(static_cast<std::size_t>(training.stage_map().stages()));
  for (int stage = 0; stage < training.stage_map().stages(); ++stage) {
    const auto group = static_cast<int>(run.memory.recompute_layers.of(stage));
    executor::StageRecompute& how = out.emplace_back(executor::StageRecompute{run.memory.recompute_of(stage),
                                                                              group == 0 ? automatic : group,
                                                                              kept_parts(run, context),
                                                                              context.tensor_rank(),
                                                                              {},
                                                                              on_host});
    if (how.blocks != Recompute::optimal) continue;
    if (!programs.chosen.empty())
      for (const ChosenBlock& block : programs.chosen[static_cast<std::size_t>(stage)])
        how.chosen.push_back(block.steps);
    if (how.chosen.empty()) how.blocks = Recompute::none; // everything is kept
  }
  return out;
}

/// By stage, whether R precedes its backwards. A backward begins with the last layer of its stage. Other layers
/// recompute later, in the same memory, so R cannot.
std::vector<bool> recomputes_early(const config::RunConfig& run, const Model& model,
                                   const std::vector<std::vector<ChosenBlock>>& chosen) {
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  std::vector<bool> out;
  for (const executor::StageLayers& of : split_of(run, model)) {
    const std::size_t stage = out.size();
    const Recompute how = run.memory.recompute_of(static_cast<int>(stage));
    const bool has_choice = !chosen.empty() && !chosen[stage].empty() && !chosen[stage].back().steps.steps.empty();
    const bool recomputes = how == Recompute::optimal ? has_choice : how != Recompute::none;
    out.push_back(recomputes && blocks.has(of.first + of.count - 1));
  }
  return out;
}

/// On an axis with one rank nothing is sent.
schedule::Assumptions assumptions_of(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                                     const LayerContext& context) {
  std::size_t largest = executor::largest_boundary(plugins.model(), context, split_of(run, plugins.model()));
  if (boundaries(run) == schedule::Boundaries::scattered) largest /= static_cast<std::size_t>(run.parallel.tensor);
  const auto guarantee = [&](std::string_view axis) {
    return layout.size(axis) > 1 ? schedule::guarantee_of(plugins.comm(std::string(axis)).traits(), largest)
                                 : schedule::Guarantee{};
  };
  schedule::Guarantee passes, reductions; // a gradient may be added over every axis whose ranks have the same layers
  for (const Axis& axis : layout.axes()) {
    if (axis.divides == Divides::layers) continue;
    reductions = schedule::both(reductions, guarantee(axis.name));
    if (axis.divides != Divides::samples) passes = schedule::both(passes, guarantee(axis.name));
  }
  return {guarantee(kPipelineAxis), reductions, passes};
}

/// One error for all violations, because a mistake of a scheduler often affects every rank. `of`: what was verified.
Refusals refuse_schedule(const config::RunConfig& run, const char* of,
                         const std::vector<schedule::Violation>& violations) {
  const std::size_t all = violations.size();
  const std::string shown =
      all > schedule::kMaxShownViolations ? text("the first {}", schedule::kMaxShownViolations) : text("all {}", all);
  const std::string command = "\"triax schedule RUN.toml\", with the same --set,";
  const std::string remedy = violations.front().remedy(), first = remedy.empty() ? "" : remedy + "; ";
  return make_refusal(ErrorCode::kInvalidSchedule, {"schedule.plugin"}, "schedule.plugin = \"{}\": {}{}",
                      run.schedule.name, of, violations.front().reason())
      .with_hint("{}",
                 all == 1 ? text("{}{} repeats this check without devices and data", first, command)
                          : text("and {} more violation{}: {} lists {}", all - 1, all == 2 ? "" : "s", command, shown));
}

} // namespace

LayerContext layer_context(const config::RunConfig& run, const Model& model, const Layout& layout, int rank) {
  const std::int64_t sequence = model.info().sequence;
  return {.layout = layout,
          .rank = rank,
          .micro = run.batch.micro,
          .vocab = run.vocab,
          .compute = run.train.compute,
          .seed = run.train.seed,
          .sequence_parallel = run.parallel.sequence && layout.tensor_size() > 1,
          .sequence = sequence,
          .max_rows = sequence};
}

int recompute_group(const config::RunConfig& run, const Model& model, const LayerContext& context,
                    const schedule::Program& training, int stage, DeviceKind device) {
  const auto group = static_cast<int>(run.memory.recompute_layers.of(stage));
  return group > 0 ? group : automatic_group(run, model, context, training, hosts_inputs(run, device));
}

bool hosts_inputs(const config::RunConfig& run, DeviceKind device) {
  return run.memory.offload_activations && device != DeviceKind::host;
}

std::optional<executor::LossScale> loss_scale_of(const config::RunConfig& run) {
  if (!run.train.loss_scale) return std::nullopt;
  const config::LossScaleKeys& keys = *run.train.loss_scale;
  executor::LossScale out;
  out.initial = out.rules.min = static_cast<float>(keys.initial);
  if (keys.constant) return out;
  out.rules.min = static_cast<float>(keys.min);
  out.rules.window = static_cast<std::int32_t>(keys.window_steps);
  out.rules.hysteresis = static_cast<std::int32_t>(keys.hysteresis);
  return out;
}

executor::ExecutorSettings executor_settings(const config::RunConfig& run, double timeout_s) {
  return {.weight_decay = run.optimizer_core.weight_decay,
          .clip_grad = run.train.clip_grad,
          .stall_timeout_s = timeout_s,
          .loss_scale = loss_scale_of(run),
          .record = run.train.cuda_graph,
          .last_step = run.train.steps,
          .warmup_steps = run.memory.offload_warmup_steps};
}

Refusals check_schedule(const config::RunConfig& run, const Model& model, const Schedule& schedule) {
  const PipelineShape shape = pipeline_shape(run);
  if (Refusals split = executor::check_split(model, shape.stages(), run.parallel.split); !split.empty()) return split;
  Refusals out;
  if (boundaries(run) == schedule::Boundaries::scattered) {
    const Layout layout = layout_of(run);
    out.add(executor::check_scatter(model, layer_context(run, model, layout, 0), split_of(run, model)));
  }
  if (run.memory.partition_activations && run.memory.recompute.any("full")) {
    const Layout layout = layout_of(run);
    out.add(executor::check_partition(model, layer_context(run, model, layout, 0)));
  }
  const std::vector<schedule::Violation> violations = schedule::verify(schedule, shape);
  if (!violations.empty()) out.add(refuse_schedule(run, "", violations));
  return out;
}

Schedule schedule_of(const config::RunConfig& run, const RankPlugins& plugins, const Schedule* given) {
  Schedule schedule = given ? *given : plugins.rows();
  if (const Refusals wrong = check_schedule(run, plugins.model(), schedule); !wrong.empty()) throw to_error(wrong);
  return schedule;
}

Programs lower_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                        const Schedule& schedule, std::vector<std::vector<ChosenBlock>> chosen) {
  const PipelineShape shape = pipeline_shape(run);
  const schedule::Boundaries crossing = boundaries(run);
  const auto prefetch = static_cast<int>(run.optimizer_core.prefetch);
  return {schedule::lower(schedule, shape, crossing, sharding(run), prefetch,
                          recomputes_early(run, plugins.model(), chosen)),
          schedule::lower_forward_only(schedule, shape, crossing, sharding(run), prefetch),
          assumptions_of(run, layout, plugins, layer_context(run, plugins.model(), layout, 0)), std::move(chosen)};
}

Programs empty_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins) {
  const auto ranks = static_cast<std::size_t>(run.parallel.pipeline);
  return {std::vector<schedule::Program>(ranks), std::vector<schedule::Program>(ranks),
          assumptions_of(run, layout, plugins, layer_context(run, plugins.model(), layout, 0))};
}

void lower_rank(const config::RunConfig& run, const StepRows& rows, int rank, Programs& programs) {
  const auto lowered = [&](const schedule::TimedRows& of) {
    return schedule::lower_rank(of, rank, boundaries(run), sharding(run),
                                static_cast<int>(run.optimizer_core.prefetch));
  };
  programs.training.at(static_cast<std::size_t>(rank)) = lowered(rows.training);
  programs.evaluation.at(static_cast<std::size_t>(rank)) = lowered(rows.evaluation);
}

ProgramSlots count_slots(const config::RunConfig& run, const StepRows& rows) {
  const auto counted = [&](const schedule::TimedRows& of) {
    std::vector<schedule::RankSlots> out;
    out.reserve(of.rows.size());
    for (int rank = 0; rank < of.shape.pipeline; ++rank)
      out.push_back(schedule::count_slots(of, rank, boundaries(run), sharding(run),
                                          static_cast<int>(run.optimizer_core.prefetch)));
    return out;
  };
  return {counted(rows.training), counted(rows.evaluation)};
}

Programs make_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                       const Schedule& schedule, std::vector<std::vector<ChosenBlock>> chosen) {
  const PipelineShape shape = pipeline_shape(run);
  Programs out = lower_programs(run, layout, plugins, schedule, std::move(chosen));
  for (const bool forward_only : {false, true}) {
    const std::vector<schedule::Violation> violations =
        schedule::verify(forward_only ? out.evaluation : out.training, {shape, forward_only}, out.assumptions);
    if (violations.empty()) continue;
    const Refusals refused = refuse_schedule(run, "the lowered program is invalid: ", violations);
    throw to_error(refused);
  }
  return out;
}

namespace {

LayerContext generating_context(const config::RunConfig& run, const Layout& layout, int rank,
                                const RankPlugins& plugins, const config::GenerateSizes& sizes) {
  constexpr std::int64_t kMaxRows = 64; // the logits of more would need much memory, and no product is faster
  LayerContext out = layer_context(run, plugins.model(), layout, rank);
  out.purpose = Purpose::generate;
  out.sequence_parallel = false;
  if (sizes.positions > 0) out.sequence = std::min(sizes.positions, out.sequence);
  out.max_rows = std::min(sizes.max_rows > 0 ? sizes.max_rows : kMaxRows, out.sequence);
  return out;
}

} // namespace

executor::GenerateRequest generate_request(const config::RunConfig& run, const Layout& layout, int rank,
                                           const RankPlugins& plugins) {
  const config::GenerateSizes& sizes = run.generate.value();
  const LayerContext context = generating_context(run, layout, rank, plugins, sizes);
  return {.model = plugins.model(),
          .context = context,
          .microbatches = sizes.samples,
          .assumptions = assumptions_of(run, layout, plugins, context),
          .split = run.parallel.split};
}

executor::GenerateRequest sample_request(const config::RunConfig& run, const Layout& layout, int rank,
                                         const RankPlugins& plugins, const executor::TrainedStages& trained,
                                         std::int64_t positions) {
  LayerContext context = generating_context(run, layout, rank, plugins, {.positions = positions});
  context.micro = 1;
  return {.model = plugins.model(),
          .context = context,
          .microbatches = 1,
          .assumptions = assumptions_of(run, layout, plugins, context),
          .trained = &trained};
}

std::shared_ptr<const executor::ModelDescription> describe_model(const config::RunConfig& run, const Layout& layout,
                                                                 int rank, const RankPlugins& plugins,
                                                                 const Programs& programs) {
  const Model& model = plugins.model();
  const auto pipeline = static_cast<std::size_t>(layout.coordinate(rank, kPipelineAxis));
  const schedule::StageMap& stage_map = programs.evaluation.at(pipeline).stage_map(); // others may be empty
  return std::make_shared<executor::ModelDescription>(
      model, layer_context(run, model, layout, rank), split_of(run, model), stage_map,
      executor::MemoryTypes{run.train.compute, run.train.master}, sharding(run));
}

std::unique_ptr<executor::RankState> make_rank_state(const config::RunConfig& run, const Layout& layout, int rank,
                                                     const RankPlugins& plugins, const Programs& programs,
                                                     std::size_t pipeline,
                                                     std::shared_ptr<const executor::ModelDescription> described) {
  const schedule::Program &evaluation = programs.evaluation.at(pipeline),
                          &training = run.evaluates ? evaluation : programs.training.at(pipeline);
  const Model& model = plugins.model();
  OptimizerTraits traits = plugins.optimizer_traits();
  if (run.evaluates) traits.state.clear(); // it does not step
  const Group samples = layout.group(rank, layout.axes_dividing({Divides::samples}));
  const executor::BatchShape batch{run.microbatches(), run.batch.micro, model.info().sequence, samples.size(),
                                   samples.group_rank};
  const LayerContext context = layer_context(run, model, layout, rank);
  const executor::RankRequest request{.model = model,
                                      .optimizer = traits,
                                      .context = context,
                                      .types = {run.train.compute, run.train.master},
                                      .split = split_of(run, model),
                                      .batch = batch,
                                      .recompute = recompute_of(run, model, context, training, programs,
                                                                hosts_inputs(run, plugins.kernels().device_kind())),
                                      .sharding = sharding(run),
                                      .offload = offload_request(run, plugins.kernels().device_kind()),
                                      .described = std::move(described)};
  return std::make_unique<executor::RankState>(request, training, evaluation);
}

Preparation::Preparation(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
                         const Programs& programs, std::shared_ptr<const executor::ModelDescription> described)
    : training((run.evaluates ? programs.evaluation : programs.training)
                   .at(static_cast<std::size_t>(layout.coordinate(rank, kPipelineAxis)))),
      evaluation(programs.evaluation.at(static_cast<std::size_t>(layout.coordinate(rank, kPipelineAxis)))),
      state(make_rank_state(run, layout, rank, plugins, programs,
                            static_cast<std::size_t>(layout.coordinate(rank, kPipelineAxis)), std::move(described))),
      split_(split_of(run, plugins.model())) {}

executor::Plan supported_plan(const config::RunConfig& run, executor::Plan plan) {
  if (!plan.refusals.empty()) throw to_error(plan.refusals, run.kernels.name);
  if (!plan.host_refusals.empty()) throw to_error(plan.host_refusals, run.memory.host_kernels->name);
  return plan;
}

executor::Plan Preparation::plan(const Layout& layout, int rank, const RankPlugins& plugins,
                                 const Programs& programs) const {
  KernelSet* const host = plugins.host() ? &plugins.host()->kernels() : nullptr;
  return state->plan(plugins.kernels(), plugins.optimizer(), {layout, rank, programs.assumptions, host});
}

executor::TrainedStages Preparation::trained() const {
  return {training.stage_map(), state->parameters(), split_, training.sharding()};
}

} // namespace triax::train
