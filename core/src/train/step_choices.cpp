// SPDX-License-Identifier: Apache-2.0
#include "train/step_choices.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "cost/cluster_file.hpp"
#include "cost/default_cluster.hpp"
#include "cost/integer_program.hpp"
#include "cost/layer_cost.hpp"
#include "cost/step_choice.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/probe_answer.hpp"
#include "report/units.hpp"
#include "train/listed_parts.hpp"
#include "train/memory_ranks.hpp"
#include "train/model_descriptions.hpp"
#include "triax/cheap_recompute.hpp"

namespace triax::train {

namespace {

constexpr double kForwardUnits = 4096; // of time in the forward of the first block of a rank

bool is_optimal(const config::RunConfig& run, int stage) {
  return !run.evaluates && run.memory.recompute.of(stage) == "optimal";
}

/// The costs of the run's cluster file, or built-in ones.
Refusals read_costs(const config::RunConfig& run, const RankPlugins& plugins, cost::Cluster& costs) {
  if (run.parallel.split_cluster.empty()) {
    costs = cost::default_cluster(run.kernels.library ? plugins.kernels().device_kind() : DeviceKind::cuda);
    return {};
  }
  cost::ClusterFile read = cost::read_cluster(run.parallel.split_cluster);
  if (!read.cluster) return cost::refusals_with_key(read, "parallel.split_cluster");
  costs = std::move(*read.cluster);
  return {};
}

/// By pipeline rank, the first of the ranks that have its stages. The choice is made for it.
std::vector<int> first_ranks(const Layout& layout) {
  return layout.group(0, layout.axes_dividing({Divides::layers})).ranks;
}

/// A row of blocks that differ in nothing but their number, on one stage.
struct Blocks {
  int stage = 0, first = 0, count = 0;
  std::vector<int> steps, tensors;     // numbers in the layer, by those of the graph
  std::vector<std::string> step_names; // of all steps of the layer
  std::vector<double> step_s;          // the same
  double forward_s = 0;
};

/// Bytes of a tensor as arenas and shared blocks assign them.
std::int64_t aligned_bytes(const StashSpec& spec) {
  return static_cast<std::int64_t>(Arena::aligned(TensorView(nullptr, spec.dtype, spec.shape).bytes()));
}

class Choices {
 public:
  Choices(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins, const cost::Cluster& cluster,
          Programs& programs)
      : run_(run),
        layout_(layout),
        plugins_(plugins),
        programs_(programs),
        costs_(cluster, *cost::code_named("triax")),
        blocks_(executor::recomputed_layers(plugins.model(), true)),
        split_(executor::split_layers(plugins.model(), pipeline_shape(run).stages(), run.parallel.split)),
        kinds_(layer_kinds(plugins.model(), layer_context(run, plugins.model(), layout, 0))) {
    programs_.chosen.assign(split_.size(), {});
  }

  /// Chooses for the stages of these pipeline ranks.
  Refusals take(std::size_t first, std::size_t count) {
    std::int64_t most = 0;
    int of_rank = 0;
    const std::vector<int> ranks = first_ranks(layout_);
    for (std::size_t pipeline = first; pipeline < first + count; ++pipeline) {
      const std::int64_t least = choose(pipeline, ranks.at(pipeline));
      if (least <= most) continue;
      most = least;
      of_rank = ranks[pipeline];
    }
    if (most == 0) return {};
    return make_refusal(ErrorCode::kOutOfMemory, {"memory.activation_budget"},
                        "memory.activation_budget = {}: the activations of rank {} need {} B ({}) at least",
                        run_.values.at("memory.activation_budget"), of_rank, most,
                        report::bytes_text(static_cast<std::uint64_t>(most)))
        .with_hint(
            "use memory.activation_budget = \"{} B\" or more, a smaller batch.micro, or memory.recompute = "
            "\"full\" with memory.recompute_layers = 0",
            most);
  }

 private:
  /// Chooses for the stages of a pipeline rank. Returns 0, or the least bytes of its activations if they exceed the
  /// budget.
  std::int64_t choose(std::size_t pipeline, int rank) {
    const schedule::Program &training = programs_.training[pipeline], &evaluation = programs_.evaluation[pipeline];
    cost::StepProblem problem;
    std::vector<Blocks> rows;
    unit_s_ = 0; // each rank has its own, so that it chooses alone what triax check chooses among others
    for (const int stage : training.stages()) {
      const executor::StageLayers& of = split_[static_cast<std::size_t>(stage)];
      const int begin = std::max(of.first, blocks_.begin), end = std::min(of.first + of.count, blocks_.end);
      if (!is_optimal(run_, stage) || begin >= end) continue;
      programs_.chosen[static_cast<std::size_t>(stage)].resize(static_cast<std::size_t>(end - begin));
      for (int first = begin; first < end; first += rows.back().count)
        add_blocks(problem, rows, stage, first, end, rank, executor::stage_slots(stage, training, evaluation));
    }
    if (rows.empty()) return 0;
    add_others(problem, pipeline, rank);
    problem.budget = static_cast<std::int64_t>(run_.memory.activation_budget);
    const std::optional<cost::StepChoice> chosen = cost::choose_steps(problem);
    if (!chosen) return cost::smallest_steps(problem).bytes;
    for (std::size_t row = 0; row < rows.size(); ++row) put(rows[row], chosen->blocks[row]);
    return 0;
  }

  void add_blocks(cost::StepProblem& problem, std::vector<Blocks>& rows, int stage, int first, int end, int rank,
                  const schedule::Slots& slots) {
    const auto kind = [this](int number) { return kinds_[static_cast<std::size_t>(number)]; };
    Blocks& row = rows.emplace_back();
    row.stage = stage;
    row.first = first;
    while (first + row.count < end && kind(first + row.count) == kind(first)) ++row.count;
    const LayerContext context = layer_context(run_, plugins_.model(), layout_, rank);
    const std::unique_ptr<Layer> block =
        plugin::guarded_call(run_.model.name, "layer", [&] { return plugins_.model().layer(first, context); });
    cost::StepGraph& graph = problem.stages.emplace_back();
    graph.blocks = row.count;
    std::vector<int> number_of = add_tensors(graph, row, block->stash(), slots);
    add_steps(graph, row, *block, context, number_of);
  }

  /// The tensors that outlive the forward. Returns their numbers in the graph, by those in the stash.
  static std::vector<int> add_tensors(cost::StepGraph& graph, Blocks& row, std::span<const StashSpec> stash,
                                      const schedule::Slots& slots) {
    const auto slots_of = [&slots](schedule::Pool pool) { return std::int64_t{slots[static_cast<std::size_t>(pool)]}; };
    std::vector<int> number_of(stash.size(), -1);
    std::int64_t in_forward = 0, in_backward = 0; // exist one after the other
    for (std::size_t i = 0; i < stash.size(); ++i) {
      const std::int64_t bytes = aligned_bytes(stash[i]);
      if (stash[i].life == Life::forward_only) in_forward += bytes;
      if (stash[i].life == Life::input_only || stash[i].life == Life::input_to_weight) in_backward += bytes;
      if (!executor::outlives_forward(stash[i].life)) continue;
      const bool to_weight = stash[i].life == Life::forward_to_weight;
      number_of[i] = static_cast<int>(graph.tensors.size());
      row.tensors.push_back(static_cast<int>(i));
      graph.tensors.push_back({stash[i].name,
                               slots_of(to_weight ? schedule::Pool::stash_w : schedule::Pool::stash_i) * bytes,
                               to_weight ? slots_of(schedule::Pool::stash_iw) * bytes : 0, bytes});
    }
    graph.shared = std::max(in_forward, in_backward);
    return number_of;
  }

  /// The steps whose bits the kernel set can repeat.
  void add_steps(cost::StepGraph& graph, Blocks& row, Layer& block, const LayerContext& context,
                 const std::vector<int>& number_of) {
    auto& offered = *find_extension<RecomputeSteps>(block); // check_recompute_steps() has refused other blocks
    const auto* const limits = find_extension<RepeatLimits>(plugins_.kernels());
    const auto asked = [this, limits](const OpCall& call) {
      return plugin::guarded_call(run_.kernels.name, "repeats", [&] { return limits->repeats(call); });
    };
    const cost::SupportsCall repeats = limits ? cost::SupportsCall(asked) : cost::SupportsCall();
    row.forward_s = costs_.of(block, context).forward.all_s();
    if (unit_s_ == 0) unit_s_ = row.forward_s > 0 ? row.forward_s / kForwardUnits : 1;
    const std::vector<cost::RepeatedTime> times = plugin::guarded_call(
        run_.model.name, "recompute_step", [&] { return costs_.of_steps(block, offered, context, repeats); });
    const auto renumbered = [&number_of](const std::vector<int>& tensors) {
      std::vector<int> out;
      out.reserve(tensors.size());
      for (const int tensor : tensors) out.push_back(number_of[static_cast<std::size_t>(tensor)]);
      return out;
    };
    for (std::size_t i = 0; i < times.size(); ++i) {
      const RecomputeStep& step = offered.steps()[i];
      row.step_names.push_back(step.name);
      row.step_s.push_back(times[i].pass.all_s());
      if (!times[i].refusals.empty()) continue;
      row.steps.push_back(static_cast<int>(i));
      graph.steps.push_back({step.name, std::max<std::int64_t>(1, std::llround(times[i].pass.all_s() / unit_s_)),
                             renumbered(step.writes), renumbered(step.reads)});
    }
  }

  /// The memory of the rank beside these blocks: that of the rank if they keep everything.
  void add_others(cost::StepProblem& problem, std::size_t pipeline, int rank) {
    const std::unique_ptr<executor::RankState> state = make_rank_state(
        run_, layout_, rank, plugins_, programs_, pipeline, descriptions_.of(rank, run_, layout_, plugins_, programs_));
    for (const executor::RankMemory::Row& row : state->memory({}))
      if (std::string_view(row.what) == "activations" && row.kind == MemoryKind::device)
        problem.fixed = static_cast<std::int64_t>(row.bytes);
    problem.shared = static_cast<std::int64_t>(state->transient_bytes());
    problem.fixed -= problem.shared;
    for (const cost::StepGraph& graph : problem.stages)
      for (const cost::StepGraph::Tensor& tensor : graph.tensors) problem.fixed -= graph.blocks * tensor.kept;
  }

  void put(const Blocks& row, const std::vector<cost::BlockSteps>& chosen) {
    const executor::StageLayers& of = split_[static_cast<std::size_t>(row.stage)];
    const int before = row.first - std::max(of.first, blocks_.begin);
    std::vector<ChosenBlock>& blocks = programs_.chosen[static_cast<std::size_t>(row.stage)];
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      ChosenBlock& block = blocks[static_cast<std::size_t>(before) + i];
      block.forward_s = row.forward_s;
      for (const int step : chosen[i].steps) {
        const auto number = static_cast<std::size_t>(row.steps[static_cast<std::size_t>(step)]);
        block.steps.steps.push_back(static_cast<int>(number));
        block.names.push_back(row.step_names[number]);
        block.recomputed_s += row.step_s[number];
      }
      for (const int tensor : chosen[i].dropped)
        block.steps.dropped.push_back(row.tensors[static_cast<std::size_t>(tensor)]);
    }
  }

  const config::RunConfig& run_;
  const Layout& layout_;
  const RankPlugins& plugins_;
  Programs& programs_;
  const cost::LayerCost costs_;
  const executor::LayerRange blocks_;
  const std::vector<executor::StageLayers> split_;
  const std::vector<int> kinds_;
  ModelDescriptions descriptions_;
  double unit_s_ = 0; // of the times of steps; 0: no block of the rank has set it
};

bool has_choice(const config::RunConfig& run) {
  return !run.evaluates && run.memory.recompute.any("optimal");
}

Refusals choose(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins, Programs& programs,
                std::size_t first_pipeline_rank, std::size_t count) {
  const plugin::CallScope call(text("{} or {}", run.model.name, run.kernels.name), "the costs of blocks", {},
                               plugin::CallKind::slow_call);
  cost::Cluster cluster;
  if (Refusals wrong = read_costs(run, plugins, cluster); !wrong.empty()) return wrong;
  return Choices(run, layout, plugins, cluster, programs).take(first_pipeline_rank, count);
}

/// The parts that a rank needs to run: not the times and names of reports.
std::string packed_choice(const std::vector<std::vector<ChosenBlock>>& chosen) {
  nlohmann::json out = nlohmann::json::array();
  for (const std::vector<ChosenBlock>& blocks : chosen) {
    nlohmann::json& stage = out.emplace_back(nlohmann::json::array());
    for (const ChosenBlock& block : blocks) stage.push_back({block.steps.steps, block.steps.dropped});
  }
  return plugin::pack(out);
}

std::vector<std::vector<ChosenBlock>> unpacked_choice(const std::string& bytes) {
  std::vector<std::vector<ChosenBlock>> out;
  for (const nlohmann::json& stage : plugin::unpack(bytes)) {
    std::vector<ChosenBlock>& blocks = out.emplace_back();
    for (const nlohmann::json& block : stage)
      blocks.push_back({{block.at(0).get<std::vector<int>>(), block.at(1).get<std::vector<int>>()}});
  }
  return out;
}

} // namespace

Refusals check_recompute_steps(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins) {
  if (!has_choice(run)) return {};
  if (const std::string error = cost::integer_solver_error(); !error.empty())
    return make_refusal(ErrorCode::kUnsupported, {"memory.recompute"}, "memory.recompute = \"optimal\": {}", error)
        .with_hint(
            "install CBC (Debian: coinor-libcbc-dev) and build Triax again, or use memory.recompute = \"cheap\" "
            "or \"full\"");
  const Model& model = plugins.model();
  const LayerContext context = layer_context(run, model, layout, 0);
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  for (int number = blocks.begin; number < blocks.end; ++number) {
    const std::unique_ptr<Layer> block =
        plugin::guarded_call(run.model.name, "layer", [&] { return model.layer(number, context); });
    auto* const offered = find_extension<RecomputeSteps>(*block);
    if (!offered)
      return make_refusal(ErrorCode::kUnsupported, {"memory.recompute", "model.plugin"},
                          "memory.recompute = \"optimal\": {} of {} cannot run parts of its forward again",
                          block->name(), run.model.name)
          .with_hint("use memory.recompute = \"none\" or \"full\"");
    Refusals wrong = check_listed(
        run, *block, "steps", "steps", [offered] { return offered->steps(); },
        [&block](const std::vector<RecomputeStep>& steps) { return executor::wrong_steps(*block, steps); });
    if (!wrong.empty()) return wrong;
  }
  return {};
}

Refusals choose_steps(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                      const Schedule& schedule, Programs& programs) {
  if (!has_choice(run)) {
    programs = make_programs(run, layout, plugins, schedule);
    return {};
  }
  programs = lower_programs(run, layout, plugins, schedule); // verified with the choice
  Refusals wrong = choose(run, layout, plugins, programs, 0, programs.training.size());
  if (wrong.empty()) programs = make_programs(run, layout, plugins, schedule, std::move(programs.chosen));
  return wrong;
}

Programs chosen_programs(const config::RunConfig& run, const Layout& layout, int rank, const RankPlugins& plugins,
                         const Schedule& schedule, Store& store, Deadline deadline) {
  if (!has_choice(run)) return make_programs(run, layout, plugins, schedule);
  Programs out = lower_programs(run, layout, plugins, schedule); // verified with the choice
  if (const Refusals wrong = check_recompute_steps(run, layout, plugins); !wrong.empty()) throw to_error(wrong);
  const auto key = [](std::size_t pipeline) { return text("train/recomputed/{}", pipeline); };
  const std::vector<int> first = first_ranks(layout);
  if (const auto own = std::ranges::find(first, rank); own != first.end()) {
    const auto pipeline = static_cast<std::size_t>(own - first.begin());
    const Refusals wrong = choose(run, layout, plugins, out, pipeline, 1);
    if (!wrong.empty()) throw to_error(wrong);
    store.set(key(pipeline), packed_choice(out.chosen));
  }
  std::vector<std::vector<ChosenBlock>> all(static_cast<std::size_t>(pipeline_shape(run).stages()));
  for (std::size_t pipeline = 0; pipeline < first.size(); ++pipeline) {
    std::vector<std::vector<ChosenBlock>> given = unpacked_choice(store.get(key(pipeline), deadline));
    for (const int stage : out.training[pipeline].stages())
      all[static_cast<std::size_t>(stage)] = std::move(given.at(static_cast<std::size_t>(stage)));
  }
  return make_programs(run, layout, plugins, schedule, std::move(all));
}

Refusals check_budget(const config::RunConfig& run, const Programs& programs, const RankPlan& plan) {
  const auto is_chosen = [&programs](int stage) {
    return !programs.chosen.empty() && !programs.chosen[static_cast<std::size_t>(stage)].empty();
  };
  if (std::ranges::none_of(programs.training[static_cast<std::size_t>(plan.pipeline)].stages(), is_chosen)) return {};
  std::uint64_t bytes = 0;
  for (const executor::ActivationPart& part : plan.activations) bytes += part.total();
  if (bytes <= run.memory.activation_budget) return {};
  return make_refusal(
             ErrorCode::kOutOfMemory, {"memory.activation_budget"},
             "memory.activation_budget = {}: the activations of rank {} need {} B, more than those of the first "
             "tensor rank, for which the recomputation is chosen",
             run.values.at("memory.activation_budget"), plan.ranks.front(), bytes)
      .with_hint("use a larger memory.activation_budget");
}

} // namespace triax::train
