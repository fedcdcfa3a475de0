// SPDX-License-Identifier: Apache-2.0
// Creates a rank's stages, counts and allocates their memory, draws the weights.
#include "executor/rank_state.hpp"

#include <algorithm>
#include <functional>

#include "executor/init.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

namespace {

std::vector<std::unique_ptr<Layer>> make_layers(const RankRequest& request, int stage) {
  const StageLayers of = request.split.at(static_cast<std::size_t>(stage));
  std::vector<std::unique_ptr<Layer>> layers;
  layers.reserve(static_cast<std::size_t>(of.count));
  const ActivityScope call(ActivityScope::Kind::plugin_call, "layer", typeid(request.model));
  for (int i = 0; i < of.count; ++i) layers.push_back(request.model.layer(of.first + i, request.context));
  return layers;
}

schedule::Slots slots_of(int stage, const schedule::Program& training, const schedule::Program& evaluation) {
  schedule::Slots slots{};
  for (int pool = 0; pool < schedule::kPools; ++pool) {
    const auto of = static_cast<schedule::Pool>(pool);
    slots[static_cast<std::size_t>(pool)] =
        static_cast<std::int32_t>(std::max(training.slots(stage, of), evaluation.slots(stage, of)));
  }
  return slots;
}

BatchInputs inputs_of(std::span<const std::unique_ptr<Stage>> stages) {
  BatchInputs out{false, false};
  for (const std::unique_ptr<Stage>& stage : stages)
    stage->for_each_layer([&out](int, const Layer& layer) {
      for (const TensorSpec& input : layer.inputs()) {
        out.tokens |= input.name == "tokens";
        out.targets |= input.name == "targets";
      }
    });
  return out;
}

} // namespace

RankState::RankState(const RankRequest& request, const schedule::Program& training, const schedule::Program& evaluation)
    : training_(training),
      evaluation_(evaluation),
      layout_(request.context.layout),
      rank_(request.context.rank),
      master_(request.types.master),
      state_names_(request.optimizer.state),
      batches_(request.batch) {
  make_stages(request);
  for (const std::unique_ptr<Stage>& stage : stages_) join_stage(*stage);
  batches_.set_inputs(inputs_of(stages_));
  const schedule::StageMap& stage_map = training.stage_map();
  parameters_ = std::make_unique<Parameters>(all_layers_, request.context.rank, training.rank(), request.context.layout,
                                             request.model.ties(), request.types, request.optimizer.state.size());
  values_ = std::make_unique<StepReductions>(request.batch, request.context.layout,
                                             stage_map.rank_of(stage_map.stages() - 1), *parameters_);
  assign_memory(memory_);
}

void RankState::make_stages(const RankRequest& request) {
  const schedule::StageMap& stage_map = training_.stage_map();
  const LayerRange recomputed = recomputed_layers(request.model, request.recompute);
  for (int index = 0; index < stage_map.stages(); ++index) {
    const int rank = stage_map.rank_of(index);
    int number = request.split.at(static_cast<std::size_t>(index)).first;
    std::vector<std::unique_ptr<Layer>> layers = make_layers(request, index);
    for (const std::unique_ptr<Layer>& layer : layers) all_layers_.push_back({number++, layer.get(), rank});
    if (rank == training_.rank()) {
      const int first = number - static_cast<int>(layers.size());
      stages_.push_back(std::make_unique<Stage>(index, first, std::move(layers), recomputed));
    } else {
      std::ranges::move(layers, std::back_inserter(elsewhere_));
    }
  }
}

void RankState::join_stage(Stage& stage) {
  const schedule::StageMap& stage_map = training_.stage_map();
  const int index = stage.index();
  if (index == 0) stage.begin_with_data();
  if (stage_map.has(index, schedule::kBeforeHere)) stage.follow(*find_stage(index - 1));
  if (stage_map.has(index, schedule::kBeforeElsewhere)) stage.receive_from(description(stage.first() - 1));
  if (stage_map.has(index, schedule::kAfterElsewhere)) stage.send_to(description(stage.end()));
  if (index == stage_map.stages() - 1) stage.end_with_loss();
}

std::vector<std::vector<std::string>> RankState::communicator_axes(const Layout& layout) const {
  std::vector<std::vector<std::string>> out;
  for (const Axis& axis : layout.axes())
    if (axis.size > 1) out.push_back({axis.name});
  for (const Reduction& reduction : parameters_->reductions())
    if (reduction.axes.size() > 1) out.push_back(reduction.axes);
  return out;
}

TensorView RankState::gradients() const {
  const auto elements = static_cast<std::int64_t>(memory_.gradients.used() / bytes_of(master_));
  return elements == 0 ? TensorView{} : TensorView(memory_.gradients.data(), master_, {elements});
}

void RankState::assign_memory(RankMemory& memory) {
  parameters_->assign_memory(memory);
  for (const std::unique_ptr<Stage>& stage : stages_)
    stage->assign_memory(memory, slots_of(stage->index(), training_, evaluation_), *parameters_);
  batches_.assign_memory(memory);
  values_->assign_memory(batches_, memory);
}

void RankState::allocate(Device& device, Stream& stream, const ScratchBytes& scratch, std::uint64_t seed, int threads) {
  {
    const ActivityScope phase(ActivityScope::Kind::engine, "allocating memory");
    RankMemory memory = RankMemory::allocated(device, memory_, scratch, stream);
    assign_memory(memory);
    memory_ = std::move(memory);
  }

  std::size_t largest = 0;
  for (const Parameter& parameter : parameters_->all()) largest = std::max(largest, parameter.master.bytes());
  const std::unique_ptr<Memory> host = device.allocate(largest, MemoryKind::pinned);
  for (const Parameter& parameter : parameters_->all()) {
    const ActivityScope phase(ActivityScope::Kind::engine, "drawing the weights");
    const TensorView drawn(host->data(), master_, parameter.spec->local);
    draw_weights(drawn, *parameter.spec, seed, threads);
    device.upload(parameter.master, drawn, stream);
    device.wait(stream.record(), Deadline::max()); // the next parameter uses the same host block
  }
  refresh_working(device, stream);
}

void RankState::refresh_working(Device& device, Stream& stream) {
  if (!parameters_->separate_working()) return;
  for (const Parameter& parameter : parameters_->all()) device.convert(parameter.working, parameter.master, stream);
}

Stage* RankState::find_stage(int index) const {
  const auto found = std::ranges::find_if(stages_, [index](const auto& stage) { return stage->index() == index; });
  return found == stages_.end() ? nullptr : found->get();
}

Stage& RankState::stage(int index) {
  Stage* found = find_stage(index);
  TRIAX_REQUIRE(found, "stage {} is not on this rank", index);
  return *found;
}

std::vector<ParameterShard> RankState::shards() const {
  return parameters_->shards(0, static_cast<int>(all_layers_.size()));
}

std::vector<ParameterShard> RankState::shards(int stage) const {
  const Stage* of = find_stage(stage);
  TRIAX_REQUIRE(of, "stage {} is not on this rank", stage);
  return parameters_->shards(of->first(), of->end());
}

bool RankState::is_copy(const Parameter& parameter) const {
  if (parameter.ranks.front() != training_.rank()) return true; // of a tie, the first layer's rank saves it
  const std::vector<std::string>& added_over = parameters_->reductions()[parameter.reduction].axes;
  return std::ranges::any_of(layout_.axes(), [&](const Axis& axis) {
    const bool divided = axis.divides == Divides::layers ||
                         std::ranges::find(added_over, axis.name) != added_over.end() ||
                         std::ranges::find(parameter.spec->cuts, axis.name, &Cut::axis) != parameter.spec->cuts.end();
    return !divided && layout_.coordinate(rank_, axis.name) != 0;
  });
}

std::vector<KeptTensor> RankState::kept() const {
  std::vector<KeptTensor> out;
  for (const Parameter& parameter : parameters_->all()) {
    const OwnedPart saved = is_copy(parameter) ? OwnedPart{} : parameter.owned;
    out.push_back({parameter.name, kMasterName, parameter.spec,
                   without_padding(parameter.master, *parameter.spec).flat(), saved});
    for (std::size_t i = 0; i < state_names_.size(); ++i)
      out.push_back({parameter.name, state_names_[i], parameter.spec, parameter.state[i], saved});
  }
  return out;
}

std::vector<std::string> RankState::layer_names() const {
  std::vector<std::string> out;
  for (const std::unique_ptr<Stage>& stage : stages_)
    stage->for_each_layer([&out](int, const Layer& layer) { out.emplace_back(layer.name()); });
  return out;
}

std::vector<ActivationPart> RankState::activation_parts() const {
  std::vector<ActivationPart> out;
  const auto alike = [](const ActivationPart& a, const ActivationPart& b) {
    return a.what == b.what && a.microbatches == b.microbatches && a.bytes == b.bytes;
  };
  for (const std::unique_ptr<Stage>& stage : stages_)
    for (const ActivationPart& part : stage->activation_parts()) {
      const auto same = std::ranges::find_if(out, [&](const ActivationPart& of) { return alike(of, part); });
      if (same == out.end()) {
        out.push_back(part);
      } else {
        ++same->layers;
      }
    }
  if (const std::size_t bytes = memory_.workspace(); bytes > 0) out.push_back({"workspace", 1, 1, bytes});
  std::ranges::stable_sort(out, std::ranges::greater{}, &ActivationPart::total);
  return out;
}

} // namespace triax::executor
