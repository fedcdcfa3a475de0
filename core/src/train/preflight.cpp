// SPDX-License-Identifier: Apache-2.0
// Runs all checks before a run starts.
#include "train/preflight.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <typeinfo>

#include "data/blended_dataset.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/plugin_call.hpp"
#include "schedule/lower.hpp"
#include "train/cheap_recompute_check.hpp"
#include "train/check_guard.hpp"
#include "train/checkpoint_check.hpp"
#include "train/checkpoints.hpp"
#include "train/collective_order.hpp"
#include "train/corpus_content.hpp"
#include "train/memory_ranks.hpp"
#include "train/model_descriptions.hpp"
#include "train/parameter_count.hpp"
#include "train/parameter_cuts.hpp"
#include "train/rank_setup.hpp"
#include "train/run_limits.hpp"
#include "train/step_choices.hpp"
#include "train/text_sample.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr std::int64_t kMaxSamples = std::int64_t{1} << 62; // counted for the report

class Check {
 public:
  Check(const config::RunConfig& run, const Placement& placement, Log& log, const CheckedDevices& devices,
        PlannedRanks planned)
      : run_(run), placement_(placement), log_(log), devices_(devices), planned_(planned), layout_(layout_of(run)) {
    // A probe process has one. Without it, a plugin that throws would not be known.
    if (!RankActivity::current()) bound_.emplace(activity_);
  }

  Preflight take() {
    guarded_({}, [this] {
      ask_plugins();
      check_data();
      if (!out_.refusals.empty()) return;
      if (planned_ == PlannedRanks::all) count_parameters();
      run_.generate ? plan_generating() : plan_ranks();
    });
    guarded_({}, [this] { ask_devices(); });
    return std::move(out_);
  }

  /// See plan_under().
  Preflight take_under(const Programs& programs, std::span<const int> pipeline_ranks) {
    has_given_programs_ = true;
    guarded_({}, [&] {
      ask_plugins();
      if (!out_.refusals.empty()) return;
      if (!run_.eval.sample.empty()) ask_text_sample();
      plan_pipeline_ranks(programs, pipeline_ranks);
    });
    return std::move(out_);
  }

 private:
  void refuse(const Refusals& refusals) { out_.refusals.add(refusals); }

  void ask_plugins() {
    plugins_ = std::make_unique<RankPlugins>(run_, layout_, 0, placement_.threads_per_rank(), log_);
    ask_traits();
    const bool on_this_machine = devices_.count > 0;
    refuse(plugins_->refusals(layout_, placement_, on_this_machine));
  }

  /// Later calls of these functions are not guarded: one that throws always is refused here.
  void ask_traits() {
    plugin::guarded_call(run_.model.name, "info", [this] { plugins_->model().info(); });
    plugin::guarded_call(run_.optimizer.name, "traits", [this] { plugins_->optimizer().traits(); });
    plugin::guarded_call(run_.kernels.name, "threads", [this] { out_.threads = plugins_->kernels().threads(); });
    if (!run_.kernels.library) return;
    plugin::guarded_call(run_.kernels.name, "device_kind", [this] { out_.device = plugins_->kernels().device_kind(); });
  }

  void check_data() {
    const std::int64_t steps = std::min(run_.train.steps, kMaxSamples / run_.batch.global);
    guarded_(run_.data.training.key, [&] { check_corpora(run_.data.training, steps * run_.batch.global, false); });
    if (run_.data.validation.paths.empty() || run_.eval.every == 0) return;
    const std::int64_t batches = std::min(run_.eval.batches, kMaxSamples / run_.batch.global);
    guarded_(run_.data.validation.key, [&] { check_corpora(run_.data.validation, batches * run_.batch.global, true); });
  }

  void check_corpora(const data::Corpora& corpora, std::int64_t samples, bool validation) {
    if (corpora.paths.empty()) return; // the run is planned without data
    const data::BlendedDataset readable(corpora, plugins_->model().info().sequence, run_.vocab, run_.train.seed);
    (validation ? data_.validation : data_.training) = content_of(readable);
    for (std::size_t i = 0; i < corpora.paths.size(); ++i) {
      out_.corpora.push_back({corpora.paths[i], validation, readable.blend().share(i), readable.corpus(i).tokens(),
                              readable.epochs(i, samples)});
    }
  }

  void count_parameters() {
    const plugin::CallScope call(run_.model.name, "layer()", {}, plugin::CallKind::slow_call);
    const Model& model = plugins_->model();
    const LayerContext context = layer_context(run_, model, layout_, 0);
    out_.parameters = parameter_count(model, context);
    check_cuts(model, context);
    call_plugin("flops_per_sample", typeid(model), [&] {
      const double flops = model.flops_per_sample(run_.vocab);
      if (!std::isfinite(flops) || flops < 0) throw Error(text("{} is not a number of operations", flops));
    });
  }

  void plan_ranks() {
    if (const Refusals large = check_step_size(run_); !large.empty()) return refuse(large);
    const Schedule schedule = plugins_->rows();
    Refusals wrong = check_schedule(run_, plugins_->model(), schedule);
    wrong.add(check_cheap_recompute(run_, layout_, *plugins_));
    wrong.add(check_recompute_steps(run_, layout_, *plugins_));
    if (!wrong.empty()) return refuse(wrong);
    if (!run_.eval.sample.empty()) ask_text_sample();
    Programs programs;
    if (wrong = choose_steps(run_, layout_, *plugins_, schedule, programs); !wrong.empty()) return refuse(wrong);
    out_.recomputation = recomputation_of(programs);
    out_.balance = balance_of(run_, plugins_->model(), programs.training, device());
    plan_pipeline_ranks(programs, planned_pipeline_ranks(programs));
  }

  std::vector<int> planned_pipeline_ranks(const Programs& programs) const {
    const Model& model = plugins_->model();
    if (planned_ == PlannedRanks::of_most_memory)
      return ranks_of_most_memory(programs, layers_of_stages(),
                                  layer_kinds(model, layer_context(run_, model, layout_, 0)), run_.memory);
    std::vector<int> out(static_cast<std::size_t>(layout_.pipeline_size()));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }

  std::vector<executor::StageLayers> layers_of_stages() const {
    return executor::split_layers(plugins_->model(), pipeline_shape(run_).stages(), run_.parallel.split);
  }

  void plan_pipeline_ranks(const Programs& programs, std::span<const int> pipeline_ranks) {
    for (const int rank : layout_.group(0, layout_.axes_dividing({Divides::layers, Divides::tensors})).ranks) {
      const int pipeline = layout_.coordinate(rank, kPipelineAxis);
      if (!std::ranges::binary_search(pipeline_ranks, pipeline)) continue;
      const std::span<const int> stages = programs.training[static_cast<std::size_t>(pipeline)].stages();
      if (is_planned(rank, stages)) plan_alike(rank, programs);
    }
  }

  bool is_planned(int rank, std::span<const int> stages) const {
    if (planned_ == PlannedRanks::of_most_memory) return has_own_parts(rank, stages);
    return std::ranges::find(equal_ranks_, rank) == equal_ranks_.end();
  }

  /// The ranks of the tensor group of `rank`, its first, that have the same layers and so the same plan, and those that
  /// differ from these in samples and positions only. None if tensor ranks send to each other: a transfer is counted
  /// for the planned rank.
  std::vector<int> ranks_equal_to(int rank, const executor::Plan& plan) {
    const std::vector<std::string> axes = layout_.axes_dividing({Divides::tensors});
    const auto is_of_tensors = [&](const std::string& axis) { return std::ranges::find(axes, axis) != axes.end(); };
    std::vector<int> out;
    for (const executor::AxisPlan& of : plan.communication)
      if (!of.sent.empty() && std::ranges::any_of(of.axes, is_of_tensors)) return out;
    for (const int other : layout_.group(rank, axes).ranks)
      if (other != rank && has_layers_of_first(layout_.coordinate(other, kTensorAxis)))
        std::ranges::copy(layout_.group(other, layout_.axes_dividing({Divides::samples, Divides::positions})).ranks,
                          std::back_inserter(out));
    return out;
  }

  /// Whether a tensor rank has the layers of the first, in all stages.
  bool has_layers_of_first(int tensor) {
    const auto [found, is_new] = has_layers_of_first_.emplace(tensor, false);
    if (!is_new) return found->second;
    const Model& model = plugins_->model();
    const std::vector<int> group = layout_.group(0, layout_.axes_dividing({Divides::tensors})).ranks;
    const auto context = [&](int rank) { return layer_context(run_, model, layout_, rank); };
    std::vector<int> stages(static_cast<std::size_t>(pipeline_shape(run_).stages()));
    std::iota(stages.begin(), stages.end(), 0);
    found->second = have_equal_layers(model, layers_of_stages(), stages, context(group.front()),
                                      context(group[static_cast<std::size_t>(tensor)]));
    return found->second;
  }

  /// Whether `rank` is the first of its tensor group, or the last and differs from the first.
  bool has_own_parts(int rank, std::span<const int> stages) const {
    const int tensor = layout_.coordinate(rank, kTensorAxis);
    if (tensor == 0) return true;
    if (tensor + 1 != layout_.tensor_size()) return false;
    const int first = layout_.group(rank, layout_.axes_dividing({Divides::tensors})).ranks.front();
    const Model& model = plugins_->model();
    return !have_equal_layers(model, layers_of_stages(), stages, layer_context(run_, model, layout_, first),
                              layer_context(run_, model, layout_, rank));
  }

  void plan_generating() {
    if (!computes())
      return refuse(make_refusal(ErrorCode::kUnsupported, {"kernels.plugin"},
                                 "kernels.plugin \"{}\" does not compute, so it has no text", run_.kernels.name)
                        .with_hint("use another kernel set, such as --set kernels.plugin=kernels-cpu"));
    out_.positions = plugins_->model().info().sequence;
    for (int rank = 0; rank < layout_.world_size(); ++rank) {
      const plugin::CallScope call(text("{} or {}", run_.model.name, run_.kernels.name),
                                   text("the dry run of rank {}", rank), {}, plugin::CallKind::slow_call);
      const RankPlugins plugins(run_, layout_, rank, placement_.threads_per_rank(), log_);
      executor::GenerateState state(generate_request(run_, layout_, rank, plugins));
      const executor::GenerateState::Plan plan = state.plan(plugins.kernels());
      for (const Refusal& refusal : plan.refusals)
        if (refused_.insert(refusal.message).second) refuse(of_kernels(run_, refusal));
      RankPlan row;
      row.ranks = {rank};
      row.pipeline = layout_.coordinate(rank, kPipelineAxis);
      row.tensor = layout_.coordinate(rank, kTensorAxis);
      row.memory = memory_rows(state.memory(plan.scratch, device()), device());
      if (rank == 0) ask_checkpoint(state.parameters().global());
      out_.plans.push_back(std::move(row));
    }
  }

  /// Plans `rank`. The ranks that differ from it in samples and positions only hold the same.
  void plan_alike(int rank, const Programs& programs) {
    RankPlan row;
    row.pipeline = layout_.coordinate(rank, kPipelineAxis);
    row.tensor = layout_.coordinate(rank, kTensorAxis);
    row.ranks = layout_.group(rank, layout_.axes_dividing({Divides::samples, Divides::positions})).ranks;
    const plugin::CallScope call(text("{}, {} or {}", run_.model.name, run_.kernels.name, run_.optimizer.name),
                                 text("the dry run of rank {}", rank), {}, plugin::CallKind::slow_call);
    const RankPlugins plugins(run_, layout_, rank, placement_.threads_per_rank(), log_);
    const Preparation prepared(run_, layout_, rank, plugins, programs,
                               descriptions_.of(rank, run_, layout_, *plugins_, programs));
    auto plan = prepared.plan(layout_, rank, plugins, programs);
    for (const Refusal& refusal : plan.refusals)
      if (refused_.insert(refusal.message).second)
        refuse(of_kernels(run_, refusal)); // ranks with the same shape have the same errors
    for (const Refusal& refusal : plan.host_refusals)
      if (refused_.insert(refusal.message).second) refuse(of_host_kernels(run_, refusal));
    row.layers = prepared.state->layer_names();
    out_.shares_accumulators |= prepared.state->parameters().shares_accumulators();
    out_.saves_weights |= prepared.state->parameters().saves_weights();
    row.memory = memory_rows(prepared.state->memory(plan.scratch), device());
    if (const executor::OffloadedState* const offloaded = prepared.state->offloaded())
      row.offload_bytes = offloaded->storage_bytes();
    row.host_traffic = prepared.state->step_traffic();
    add_staging(*prepared.state, row);
    if (sample_positions_ > 0) add_text_sample(rank, plugins, prepared, row);
    if (out_.plans.empty() && !has_given_programs_) ask_checkpoint(prepared.state->parameters().global());
    row.activations = prepared.state->activation_parts();
    refuse(check_budget(run_, programs, row));
    if (planned_ == PlannedRanks::all_that_differ && row.tensor == 0) {
      equal_ranks_ = ranks_equal_to(rank, plan);
      std::ranges::copy(equal_ranks_, std::back_inserter(row.ranks));
    }
    for (const int alike : row.ranks) row.traffic.push_back(traffic_of(plan, alike));
    row.communication = std::move(plan.communication);
    compare_collectives(row, std::move(plan));
    out_.plans.push_back(std::move(row));
  }

  /// That of a kernel set that is not installed here is a GPU.
  DeviceKind device() const { return out_.device.value_or(DeviceKind::cuda); }

  /// Adds the copy from which checkpoints are written, if there is one.
  void add_staging(const executor::RankState& state, RankPlan& row) const {
    if (!uses_staging(run_, device(), computes())) return;
    row.memory.push_back({"checkpoint staging", staging_bytes(state.kept()), device() != DeviceKind::host});
  }

  /// Checks eval.sample, which all ranks have in common.
  void ask_text_sample() {
    if (!computes())
      return refuse(make_refusal(ErrorCode::kUnsupported, {"eval.sample", "kernels.plugin"},
                                 "kernels.plugin \"{}\" does not compute, so it has no text for eval.sample",
                                 run_.kernels.name)
                        .with_hint("use another kernel set, or remove eval.sample"));
    guarded_("eval.sample", [&] { sample_positions_ = sample_positions(run_, plugins_->model().info().sequence); });
  }

  void add_text_sample(int rank, const RankPlugins& plugins, const Preparation& prepared, RankPlan& row) {
    const TextSample::Plan plan = TextSample::plan(run_, layout_, rank, plugins, prepared, sample_positions_, device());
    for (const Refusal& refusal : plan.refusals)
      if (refused_.insert(refusal.message).second) refuse(of_kernels(run_, refusal));
    std::ranges::copy(plan.memory, std::back_inserter(row.memory));
  }

  /// A kernel set that is not installed here does.
  bool computes() const { return !plugins_ || plugins_->kernels().computes(); }

  void ask_checkpoint(std::span<const executor::GlobalParameter> parameters) {
    const bool has_weights = out_.device != DeviceKind::sim && computes();
    out_.resume = check_checkpoint(run_, *plugins_, computes(), has_weights, parameters, data_, guarded_);
  }

  /// The traffic of a rank that has the same plan as the planned one.
  std::vector<report::GroupTraffic> traffic_of(const executor::Plan& plan, int rank) const {
    std::vector<report::GroupTraffic> out;
    for (const executor::AxisPlan& of : plan.communication) {
      const int member = layout_.group_rank(rank, of.axes);
      const CommStats& stats = of.of_member.at(static_cast<std::size_t>(member));
      out.push_back({of.axis, run_.comm.at(of.axes.back()).name, stats.ops, stats.bytes_out, stats.bytes_in});
    }
    return out;
  }

  /// The ranks of a tensor group must post the same collectives in every action, or they would wait for each other
  /// indefinitely. Reports the first difference.
  void compare_collectives(const RankPlan& row, executor::Plan plan) {
    if (row.tensor == 0) {
      first_of_group_ = std::move(plan);
      return;
    }
    if (has_different_collectives_) return;
    compare(first_of_group_.tensor_collectives, plan.tensor_collectives, row.tensor, "");
    compare(first_of_group_.evaluation_collectives, plan.evaluation_collectives, row.tensor, " of an evaluation");
  }
  using Collectives = std::map<executor::StageAction, std::vector<Collective>>;
  void compare(const Collectives& of_first, const Collectives& of_other, int other, std::string_view when) {
    for (const auto& [action, collectives] : of_other) {
      const std::string difference = collective_difference(of_first.at(action), collectives, other);
      if (difference.empty() || has_different_collectives_) continue;
      has_different_collectives_ = true;
      refuse(make_refusal(ErrorCode::kIncompatible, {run_.model.named_in + ".plugin"},
                          "{}: the ranks of a tensor group post different collectives in {} of stage {}{}: {}",
                          run_.model.name, schedule::rule(action.first).name, action.second, when, difference)
                 .with_hint("this is a defect of the model: use parallel.tensor 1, or report it to its author"));
    }
  }

  /// The memory of a rank is only known if all ranks are on this machine. Reports only the first rank without a device.
  void ask_devices() {
    if (!plugins_) return; // could not be created; already reported
    for (int local = devices_.first; local < devices_.first + devices_.count; ++local) {
      const double bytes = placement_.ranks == layout_.world_size() ? bytes_of(local) : 0;
      const Refusals answer = plugins_->device_available({local, placement_.ranks, bytes});
      if (!answer.empty()) return refuse(answer);
    }
  }

  double bytes_of(int rank) const {
    double bytes = 0;
    for (const RankPlan& plan : out_.plans) {
      if (std::ranges::find(plan.ranks, rank) == plan.ranks.end()) continue;
      bytes += static_cast<double>(plan.bytes());
    }
    return bytes;
  }

  RankActivity activity_;
  std::optional<RankActivity::Binding> bound_;
  const config::RunConfig& run_;
  const Placement& placement_;
  Log& log_;
  const CheckedDevices devices_;
  const PlannedRanks planned_;
  CheckGuard guarded_{run_, out_.refusals};
  Layout layout_;
  std::unique_ptr<RankPlugins> plugins_;
  ModelDescriptions descriptions_;
  std::set<std::string> refused_; // from the plans of ranks
  std::vector<int> equal_ranks_;  // to the last first rank of a tensor group: see PlannedRanks::all_that_differ
  std::map<int, bool> has_layers_of_first_; // by tensor rank
  std::int64_t sample_positions_ = 0;       // of eval.sample; 0: there is none
  executor::Plan first_of_group_;           // of tensor rank 0
  bool has_different_collectives_ = false, has_given_programs_ = false;
  checkpoint::DataContent data_;
  Preflight out_;
};

} // namespace

std::uint64_t RankPlan::bytes() const {
  std::uint64_t out = 0;
  for (const MemoryRow& row : memory) out += row.is_on_host ? 0 : row.bytes;
  return out;
}

Preflight preflight(const config::RunConfig& run, const Placement& placement, Log& log, const CheckedDevices& devices,
                    PlannedRanks planned) {
  Preflight out;
  out.refusals = check_world(run);
  if (!out.refusals.empty()) return out;
  return Check(run, placement, log, devices, planned).take();
}

Preflight plan_under(const config::RunConfig& run, const Placement& placement, Log& log, const Programs& programs,
                     std::span<const int> pipeline_ranks, PlannedRanks planned) {
  return Check(run, placement, log, {}, planned).take_under(programs, pipeline_ranks);
}

} // namespace triax::train
