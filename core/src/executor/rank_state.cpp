// Building a rank's stages, counting and allocating their memory, drawing the weights.
#include "executor/rank_state.hpp"

#include <algorithm>

#include "executor/init.hpp"
#include "triax/error.hpp"

namespace triax::executor {

namespace {

std::unique_ptr<Stage> make_stage(const RankRequest& request, int index) {
  const StageLayers of = request.split.at(static_cast<std::size_t>(index));
  std::vector<std::unique_ptr<Layer>> layers;
  layers.reserve(static_cast<std::size_t>(of.count));
  for (int i = 0; i < of.count; ++i) layers.push_back(request.model.layer(of.first + i, request.context));
  return std::make_unique<Stage>(index, of.first, std::move(layers));
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

} // namespace

RankState::RankState(const RankRequest& request, const schedule::Program& training, const schedule::Program& evaluation)
    : training_(training), evaluation_(evaluation), master_(request.types.master), batches_(request.batch) {
  std::vector<Parameters::NumberedLayer> layers;
  for (const int index : training.stages()) {
    Stage* before = stages_.empty() ? nullptr : stages_.back().get();
    stages_.push_back(make_stage(request, index));
    stages_.back()->follow(before);
    std::ranges::copy(stages_.back()->numbered_layers(), std::back_inserter(layers));
  }
  stages_.back()->end_with_loss();
  parameters_ =
      std::make_unique<Parameters>(layers, request.model.ties(), request.types, request.optimizer.state.size());
  values_ = std::make_unique<StepValues>(request.batch, request.context.tensor(), parameters_->all().size());
  place(memory_);
}

void RankState::place(RankMemory& memory) {
  parameters_->place(memory);
  for (const std::unique_ptr<Stage>& stage : stages_)
    stage->place(memory, slots_of(stage->index(), training_, evaluation_), *parameters_);
  batches_.place(memory);
  values_->place(memory);
}

void RankState::allocate(Device& device, Stream& stream, std::size_t scratch, std::uint64_t seed) {
  RankMemory memory = RankMemory::allocated(device, memory_, scratch, stream);
  place(memory);
  memory_ = std::move(memory);

  std::size_t largest = 0;
  for (const Parameter& parameter : parameters_->all()) largest = std::max(largest, parameter.master.bytes());
  const std::unique_ptr<Memory> host = device.allocate(largest, MemoryKind::pinned);
  for (const Parameter& parameter : parameters_->all()) {
    const TensorView drawn(host->data(), master_, parameter.spec->local);
    draw_weights(drawn, *parameter.spec, seed);
    device.upload(parameter.master, drawn, stream);
    device.wait(stream.record(), Deadline::max()); // the next is drawn into the same block
  }
  refresh_working(device, stream);
}

void RankState::refresh_working(Device& device, Stream& stream) {
  if (!parameters_->separate_working()) return;
  for (const Parameter& parameter : parameters_->all()) device.convert(parameter.working, parameter.master, stream);
}

Stage& RankState::stage(int index) {
  const auto found = std::ranges::find_if(stages_, [index](const auto& stage) { return stage->index() == index; });
  TRIAX_REQUIRE(found != stages_.end(), "stage {} is not on this rank", index);
  return **found;
}

std::vector<std::string> RankState::layer_names() const {
  std::vector<std::string> out;
  for (const std::unique_ptr<Stage>& stage : stages_)
    for (const Parameters::NumberedLayer& numbered : stage->numbered_layers()) out.emplace_back(numbered.layer->name());
  return out;
}

TensorView RankState::bucket(int layer_number) const {
  const std::vector<TensorView>& accumulators = parameters_->gradients_of(layer_number);
  if (accumulators.empty()) return {};
  auto* begin = accumulators.front().as<std::byte>();
  auto* end = accumulators.back().as<std::byte>() + accumulators.back().bytes();
  const auto elements = (end - begin) / static_cast<std::ptrdiff_t>(bytes_of(master_));
  return {begin, master_, {static_cast<std::int64_t>(elements)}};
}

} // namespace triax::executor
