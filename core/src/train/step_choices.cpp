// SPDX-License-Identifier: Apache-2.0
#include "train/step_choices.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "config/diagnostics.hpp"
#include "cost/cluster_file.hpp"
#include "cost/default_cluster.hpp"
#include "cost/integer_program.hpp"
#include "cost/layer_cost.hpp"
#include "cost/step_choice.hpp"
#include "plugin/call_guard.hpp"
#include "report/units.hpp"
#include "train/memory_ranks.hpp"
#include "triax/cheap_recompute.hpp"

namespace triax::train {

namespace {

constexpr double kForwardUnits = 4096; // of time in the forward of the first block

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
  if (read.cluster) {
    costs = std::move(*read.cluster);
    return {};
  }
  Refusals out;
  for (const config::Diagnostic& of : read.refusals) {
    const std::string problem = config::to_text({of.refusal.code, {}, of.refusal.message, {}}, of.at, {});
    out.add(make_refusal(of.refusal.code, {"parallel.split_cluster"}, "parallel.split_cluster: {}", problem)
                .with_hint("{}", of.refusal.hint));
  }
  return out;
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

  Refusals take() {
    std::int64_t most = 0;
    int of_rank = 0;
    const std::vector<int> ranks = layout_.group(0, layout_.axes_dividing({Divides::layers})).ranks;
    for (std::size_t pipeline = 0; pipeline < ranks.size(); ++pipeline) {
      const std::int64_t least = choose(pipeline, ranks[pipeline]);
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
  void add_others(cost::StepProblem& problem, std::size_t pipeline, int rank) const {
    const std::unique_ptr<executor::RankState> state =
        make_rank_state(run_, layout_, rank, plugins_, programs_, pipeline);
    for (const executor::RankMemory::Row& row : state->memory({}))
      if (std::string_view(row.what) == "activations") problem.fixed = static_cast<std::int64_t>(row.bytes);
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
  double unit_s_ = 0; // of the times of steps
};

} // namespace

Refusals check_recompute_steps(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins) {
  if (run.evaluates || !run.memory.recompute.any("optimal")) return {};
  if (!cost::has_integer_solver())
    return make_refusal(ErrorCode::kUnsupported, {"memory.recompute"},
                        "memory.recompute = \"optimal\": this build has no solver of integer programs")
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
    const auto listed = [&] {
      return plugin::guarded_call(run.model.name, "steps", [&] {
        const std::span<const RecomputeStep> steps = offered->steps();
        return std::vector<RecomputeStep>(steps.begin(), steps.end());
      });
    };
    const std::vector<RecomputeStep> first = listed();
    std::string wrong = executor::wrong_steps(*block, first);
    if (wrong.empty() && listed() != first)
      wrong = text("{}: steps() lists other steps at its second call", block->name());
    if (!wrong.empty())
      return make_refusal(ErrorCode::kIncompatible, {run.model.named_in + ".plugin"}, "{}: {}", run.model.name, wrong)
          .with_hint(
              "this is a defect of the model: report it to its author, or use memory.recompute = \"none\" or "
              "\"full\"");
  }
  return {};
}

Refusals choose_steps(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                      const Schedule& schedule, Programs& programs) {
  if (run.evaluates || !run.memory.recompute.any("optimal")) return {};
  const plugin::CallScope call(text("{} or {}", run.model.name, run.kernels.name), "the costs of blocks", {},
                               plugin::CallKind::slow_call);
  cost::Cluster cluster;
  if (Refusals wrong = read_costs(run, plugins, cluster); !wrong.empty()) return wrong;
  Refusals wrong = Choices(run, layout, plugins, cluster, programs).take();
  if (wrong.empty()) programs = make_programs(run, layout, plugins, schedule, std::move(programs.chosen));
  return wrong;
}

Programs chosen_programs(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins,
                         const Schedule& schedule) {
  Programs out = make_programs(run, layout, plugins, schedule);
  Refusals wrong = check_recompute_steps(run, layout, plugins);
  if (wrong.empty()) wrong = choose_steps(run, layout, plugins, schedule, out);
  if (!wrong.empty()) throw to_error(wrong);
  return out;
}

Refusals check_budget(const config::RunConfig& run, const Programs& programs, const RankPlan& plan) {
  const auto has_choice = [&programs](int stage) {
    return !programs.chosen.empty() && !programs.chosen[static_cast<std::size_t>(stage)].empty();
  };
  if (std::ranges::none_of(programs.training[static_cast<std::size_t>(plan.pipeline)].stages(), has_choice)) return {};
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

std::vector<std::string> choice_lines(const Programs& programs) {
  std::vector<std::string> out;
  for (std::size_t stage = 0; stage < programs.chosen.size(); ++stage) {
    const std::vector<ChosenBlock>& blocks = programs.chosen[stage];
    if (blocks.empty()) continue;
    std::string line = text("stage {}:", stage);
    double recomputed_s = 0, forward_s = 0;
    for (std::size_t first = 0, end = 0; first < blocks.size(); first = end) {
      while (end < blocks.size() && blocks[end].steps == blocks[first].steps) ++end;
      std::string names;
      for (const std::string& name : blocks[first].names) names += (names.empty() ? "" : ", ") + name;
      line += text("{} {} {}", first == 0 ? "" : ";", report::counted_text(static_cast<int>(end - first), "block"),
                   names.empty() ? std::string(end - first == 1 ? "keeps all" : "keep all")
                                 : text("{} {}", end - first == 1 ? "recomputes" : "recompute", names));
    }
    for (const ChosenBlock& block : blocks) {
      recomputed_s += block.recomputed_s;
      forward_s += block.forward_s;
    }
    out.push_back(text("{}; {} of its blocks' forward by the cost model", line,
                       report::percent_text(forward_s > 0 ? recomputed_s / forward_s : 0)));
  }
  return out;
}

} // namespace triax::train
