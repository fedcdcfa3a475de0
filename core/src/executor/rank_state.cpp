// SPDX-License-Identifier: Apache-2.0
// Creates a rank's stages, counts and allocates their memory, draws the weights.
#include "executor/rank_state.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "executor/init.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

schedule::Slots stage_slots(int stage, const schedule::Program& training, const schedule::Program& evaluation) {
  schedule::Slots slots{};
  for (int pool = 0; pool < schedule::kPools; ++pool) {
    const auto of = static_cast<schedule::Pool>(pool);
    slots[static_cast<std::size_t>(pool)] =
        static_cast<std::int32_t>(std::max(training.slots(stage, of), evaluation.slots(stage, of)));
  }
  return slots;
}

RankState::RankState(const RankRequest& request, const schedule::Program& training, const schedule::Program& evaluation)
    : training_(training),
      evaluation_(evaluation),
      layout_(request.context.layout),
      rank_(request.context.rank),
      master_(request.types.master),
      state_names_(request.optimizer.state),
      described_(request.described),
      stages_(request.model, request.context, request.split, training.stage_map(), training.rank(),
              {.purpose = request.context.purpose}, request.recompute, described_.get()),
      batches_(request.batch) {
  TRIAX_REQUIRE(request.context.purpose == Purpose::train,
                "a training step needs layers of Purpose::train, not generate");
  batches_.set_inputs(stages_.inputs());
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    if (training.recomputes(stage->index())) stage->recompute_early();
  const schedule::StageMap& stage_map = training.stage_map();
  parameters_ =
      std::make_unique<Parameters>(model_parameters(request), training.rank(), request.optimizer.state.size());
  if (request.sharding == schedule::Sharding::parameters) share_weights();
  if (!training.has(schedule::Kind::opt_step)) parameters_->leave_out_gradients();
  if (schedule::scatters_gradients(request.sharding) && training.has(schedule::Kind::reduce_grad)) {
    std::vector<StageAccumulator> accumulators;
    for (const std::unique_ptr<Stage>& stage : stages_.all())
      accumulators.push_back({stage->first(), stage->end(), training.accumulator(stage->index())});
    parameters_->share_accumulators(accumulators);
  }
  values_ = std::make_unique<StepReductions>(request.batch, request.context.layout,
                                             stage_map.rank_of(stage_map.stages() - 1), *parameters_);
  if (request.offload.target != OffloadTarget::none && (!state_names_.empty() || parameters_->separate_working()))
    offload_state(request);
  assign_memory(memory_);
}

std::shared_ptr<const ModelParameters> RankState::model_parameters(const RankRequest& request) const {
  if (!described_)
    return std::make_shared<ModelParameters>(stages_.layers(), rank_, layout_, request.model.ties(), request.types,
                                             request.sharding);
  described_->check_ties(request.model, request.context, stages_.layers(), training_.rank());
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    stage->for_each_layer([this](int number, const Layer& layer) { described_->check_parameters(number, layer); });
  return described_->parameters();
}

void RankState::offload_state(const RankRequest& request) {
  parameters_->offload_state();
  std::vector<OffloadedState::StageParameters> stages;
  for (const schedule::ProgramAction& action : training_.actions())
    if (action.kind == schedule::Kind::opt_step)
      stages.push_back({action.stage, stages_.at(action.stage).first(), stages_.at(action.stage).end()});
  offloaded_ = std::make_unique<OffloadedState>(*parameters_, stages, request.types, state_names_.size(),
                                                request.offload, request.optimizer.elementwise);
}

void RankState::share_weights() {
  std::vector<StageLayers> stages;
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    stages.push_back({stage->first(), stage->end() - stage->first()});
  parameters_->share_weights(stages, std::max(training_.weight_slots(), evaluation_.weight_slots()));
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
  const std::size_t shared = parameters_->shared_accumulator_bytes();
  const auto elements = static_cast<std::int64_t>((memory_.gradients.used() - shared) / bytes_of(master_));
  auto* const begin = static_cast<std::byte*>(memory_.gradients.data());
  return elements == 0 ? TensorView{} : TensorView(begin + shared, master_, {elements});
}

void RankState::assign_memory(RankMemory& memory) {
  parameters_->assign_memory(memory);
  if (offloaded_) offloaded_->assign_memory(memory);
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    stage->assign_memory(memory, stage_slots(stage->index(), training_, evaluation_), *parameters_);
  batches_.assign_memory(memory);
  values_->assign_memory(batches_, memory);
}

void RankState::allocate(Device& device, Stream& stream, const ScratchBytes& scratch) {
  const ActivityScope phase(ActivityScope::Kind::engine, "allocating memory");
  RankMemory memory = RankMemory::allocated(device, memory_, scratch, stream);
  assign_memory(memory);
  memory_ = std::move(memory);
}

/// On the host, weights are drawn where they are stored.
void RankState::draw_weights(Device& device, Stream& stream, std::uint64_t seed, int threads) {
  const bool is_host = device.kind() == DeviceKind::host;
  std::size_t largest = 0;
  for (const Parameter& parameter : parameters_->all()) largest = std::max(largest, parameter.accumulator.bytes());
  const std::unique_ptr<Memory> block = device.allocate(is_host ? 0 : largest, MemoryKind::pinned);
  for (std::size_t i = 0; i < parameters_->all().size(); ++i) {
    const Parameter& parameter = parameters_->all()[i];
    const ActivityScope phase(ActivityScope::Kind::engine, "drawing the weights");
    const TensorView& all = whole(parameter);
    const TensorView drawn(is_host ? all.data() : block->data(), master_, parameter.spec->local);
    executor::draw_weights(drawn, *parameter.spec, seed, threads);
    if (!is_host) device.upload(all, drawn, stream);
    distribute(parameter, all, device, stream);
    device.wait(stream.record(), Deadline::max()); // the next parameter may use the same memory
    if (parameters_->offloads_master()) write_master(i, drawn);
  }
  if (offloaded_) offloaded_->start(device, stream);
}

void RankState::write_master(std::size_t index, const TensorView& drawn) const {
  const Parameter& parameter = parameters_->all()[index];
  const TensorView stored = without_padding(drawn, *parameter.spec).flat();
  const OwnedPart& owned = parameter.owned;
  const TensorView updated = parameter.sharded ? stored.slice(0, owned.first, owned.first + owned.count) : stored;
  OffloadedTensor(*offloaded_, index, 0).write(0, {updated.as<const std::byte>(), updated.bytes()});
}

/// Every rank draws all of a parameter. A rank that holds a part, or has offloaded the master weights, has no memory
/// for all of them, and uses that of the accumulator, which is zeroed before its use.
const TensorView& RankState::whole(const Parameter& parameter) const {
  const bool has_master = !parameter.holds_part && !parameters_->offloads_master();
  return has_master ? parameter.master : parameter.accumulator;
}

void RankState::distribute(const Parameter& parameter, const TensorView& all, Device& device, Stream& stream) const {
  const OwnedPart& owned = parameter.owned;
  const TensorView part = all.flat().slice(0, owned.first, owned.first + owned.count);
  if (parameters_->separate_working() && (!parameter.resharded || owned.count > 0))
    device.convert(parameter.working, parameter.resharded ? part : all, stream);
  if (parameter.holds_part && owned.count > 0 && !parameters_->offloads_master())
    device.copy(parameter.master, part, stream);
}

std::vector<ParameterShard> RankState::shards() const {
  if (!offloaded_) return parameters_->shards(0, parameters_->layers());
  std::vector<ParameterShard> out;
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    for (OptimizerCall& call : offloaded_->calls(stage->index()))
      std::ranges::move(call.shards, std::back_inserter(out));
  return out;
}

std::vector<OptimizerCall> RankState::optimizer_calls(int stage) const {
  if (offloaded_) return offloaded_->calls(stage);
  const Stage& of = stages_.at(stage);
  std::vector<OptimizerCall> out;
  if (std::vector<ParameterShard> shards = parameters_->shards(of.first(), of.end()); !shards.empty())
    out.push_back({std::move(shards), {}});
  return out;
}

bool RankState::is_copy(const Parameter& parameter) const {
  if (parameter.ranks.front() != training_.rank()) return true; // tied: the rank of the first layer saves it
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
  for (std::size_t index = 0; index < parameters_->all().size(); ++index) {
    const Parameter& parameter = parameters_->all()[index];
    const auto offloaded = [&](std::size_t tensor) {
      return offloaded_ ? OffloadedTensor(*offloaded_, index, tensor) : OffloadedTensor();
    };
    const bool offloads_master = parameters_->offloads_master();
    const OwnedPart saved = is_copy(parameter) ? OwnedPart{} : parameter.owned,
                    all{0, stored_elements(*parameter.spec)};
    const TensorView master =
        parameter.holds_part ? parameter.master : without_padding(parameter.master, *parameter.spec).flat();
    out.push_back({parameter.name, kMasterName, parameter.spec, master, parameter.holds_part ? parameter.owned : all,
                   saved, offloads_master ? offloaded(0) : OffloadedTensor()});
    for (std::size_t i = 0; i < state_names_.size(); ++i)
      out.push_back({parameter.name, state_names_[i], parameter.spec, parameter.state[i],
                     parameter.sharded ? parameter.owned : all, saved, offloaded(offloads_master ? i + 1 : i)});
    if (offloaded_ && offloaded_->may_delay()) {
      const OwnedPart updated = parameter.sharded ? parameter.owned : all;
      out.push_back({parameter.name, kReadWeightsName, parameter.spec,
                     TensorView(nullptr, offloaded_->working(), {updated.count}), updated, saved,
                     offloaded(OffloadedTensor::kReadWeights)});
    }
  }
  return out;
}

std::vector<std::string> RankState::layer_names() const {
  std::vector<std::string> out;
  for (const std::unique_ptr<Stage>& stage : stages_.all())
    stage->for_each_layer([&out](int, const Layer& layer) { out.emplace_back(layer.name()); });
  return out;
}

std::vector<ActivationPart> RankState::activation_parts() const {
  std::vector<ActivationPart> out;
  const auto alike = [](const ActivationPart& a, const ActivationPart& b) {
    return a.what == b.what && a.microbatches == b.microbatches && a.bytes == b.bytes;
  };
  for (const std::unique_ptr<Stage>& stage : stages_.all())
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
