// SPDX-License-Identifier: Apache-2.0
#include "stepper.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "triax/rank_activity.hpp"
#include "triax/saved_state.hpp"

namespace triax::conformance {

namespace {

constexpr std::size_t kOperationScratch = 1 << 16; // more than any optimizer operation needs for these sizes

const Layout& one_rank() {
  static const Layout layout = Layout::ptd(1, 1, 1);
  return layout;
}

const Groups& no_groups() {
  static const Groups groups;
  return groups;
}

} // namespace

std::string to_text(const StepTypes& types) {
  std::string out(name_of(types.master));
  if (types.working) out += text(" with working weights in {}", name_of(*types.working));
  return out;
}

Object<KernelSet> kernels_for(const OptimizerSubject& subject, const StepTypes& types) {
  for (const auto& create : subject.kernels) {
    Object<KernelSet> made = create();
    if (made->supports(KernelRequest{types.working.value_or(types.master), types.master}).empty()) return made;
  }
  return {};
}

Object<Optimizer> make_optimizer(const OptimizerSubject& subject, const Layout& layout, int rank) {
  return subject.optimizer({subject.options, null_log(), layout, rank, 1});
}

Object<Optimizer> make_optimizer(const OptimizerSubject& subject) {
  return make_optimizer(subject, one_rank(), 0);
}

Stepper::Stepper(const OptimizerSubject& subject, const StepTypes& types, const std::vector<Part>& parts)
    : Stepper(subject, types, parts, SteppedRank{.layout = one_rank()}) {}

Stepper::Stepper(const OptimizerSubject& subject, const StepTypes& types, const std::vector<Part>& parts,
                 const SteppedRank& rank)
    : subject_(subject),
      types_(types),
      parts_(parts),
      rank_(rank),
      own_device_(rank.device ? nullptr : make_host_device()),
      device_(rank.device ? *rank.device : *own_device_),
      stream_(device_.make_stream("steps")),
      kernels_(kernels_for(subject, types)),
      optimizer_(another_optimizer()),
      state_names_(optimizer_->traits().state),
      scalars_(std::make_unique<StepScalars>()),
      operation_scratch_(std::make_unique<GuardedMemory>(kOperationScratch)) {
  TRIAX_REQUIRE(kernels_ != nullptr, "no kernel set supports {}", to_text(types));
  kernels_->start(device_);
  states_.reserve(parts.size()); // shards refer to its elements
  for (const Part& part : parts_) add_shard(part, state_names_);
  optimizer_->prepare(shards_);
  scratch_ = std::make_unique<GuardedMemory>(optimizer_->scratch_bytes(shards_));
}

TensorView Stepper::tensor(const std::string& name, DType dtype, std::int64_t elements) {
  const Shape shape{elements};
  memory_.emplace_back(name, std::make_unique<GuardedMemory>(TensorView(nullptr, dtype, shape).bytes()));
  return {memory_.back().second->data(), dtype, shape};
}

void Stepper::add_shard(const Part& part, const std::vector<std::string>& state) {
  const auto make = [&](const std::string& name, DType dtype) {
    return tensor(text("{}, {}", part.spec.name, name), dtype, part.elements);
  };
  ParameterShard shard{.name = part.spec.name,
                       .spec = &part.spec,
                       .first = part.first,
                       .master = make("master", types_.master),
                       .gradient = make("gradient", types_.master),
                       .working = types_.working ? make("working", *types_.working) : TensorView{},
                       .state = {},
                       .group = part.group,
                       .members = part.members,
                       .owned_first = part.owned_first,
                       .owned_elements = part.owned_elements,
                       .sharded = part.sharded};
  const auto weight = [&](std::int64_t i) { return fixed_value(1, part.parameter, part.global(i)); };
  set_elements(shard.master, weight);
  if (types_.working) set_elements(shard.working, weight);
  std::vector<TensorView> tensors;
  for (const std::string& name : state) tensors.push_back(make(name, types_.master));
  states_.push_back(std::move(tensors));
  shard.state = states_.back();
  shards_.push_back(std::move(shard));
}

void Stepper::put_gradients(double factor) {
  const auto step = static_cast<std::uint32_t>(scalars_->step);
  for (std::size_t i = 0; i < shards_.size(); ++i)
    set_elements(shards_[i].gradient, [&](std::int64_t element) {
      return factor * fixed_value(100 + step, parts_[i].parameter, parts_[i].global(element));
    });
}

void Stepper::fill_gradients(double value) {
  for (const ParameterShard& shard : shards_) set_elements(shard.gradient, [value](std::int64_t) { return value; });
}

void Stepper::fill_working(double value) {
  for (const ParameterShard& shard : shards_) set_elements(shard.working, [value](std::int64_t) { return value; });
}

void Stepper::fill_scratch(std::byte value) {
  std::fill_n(scratch_->data(), scratch_->bytes(), value);
}

void Stepper::begin_step(const StepInput& input) {
  if (!input.skip) ++scalars_->step;
  scalars_->lr = input.lr;
  scalars_->clip = input.clip;
  scalars_->skip = input.skip ? 1 : 0;
  weight_decay_ = input.weight_decay;
  put_gradients(input.gradient);
  if (input.nan_gradient) fill_gradients(std::numeric_limits<double>::quiet_NaN());
}

StepArgs Stepper::arguments(Stream& stream, const Groups& groups) const {
  return {.scalars = scalars_.get(),
          .weight_decay = weight_decay_,
          .groups = groups,
          .scratch = {scratch_->data(), scratch_->bytes()},
          .op = {stream, {operation_scratch_->data(), operation_scratch_->bytes()}}};
}

void Stepper::call(std::span<const ParameterShard> shards) {
  Optimizer& stepped = *optimizer_;
  const StepArgs given = arguments(*stream_, rank_.groups ? *rank_.groups : no_groups());
  call_plugin("step", typeid(stepped), [&] { stepped.step(shards, given, *kernels_); });
}

void Stepper::step(const StepInput& input) {
  begin_step(input);
  call(shards_);
}

void Stepper::steps(int count, const StepInput& input) {
  for (int i = 0; i < count; ++i) step(input);
}

void Stepper::replace_optimizer() {
  SavedState* const before = find_extension<SavedState>(*optimizer_);
  const std::string saved = before ? before->save() : std::string();
  optimizer_ = another_optimizer();
  optimizer_->prepare(shards_);
  if (!before) return;
  SavedState* const after = find_extension<SavedState>(*optimizer_);
  if (!after) throw Error("one object offers SavedState, but another does not");
  after->load(saved);
}

std::vector<std::pair<std::string, TensorView>> Stepper::views_of(std::size_t shard) const {
  std::vector<std::pair<std::string, TensorView>> out;
  const auto add = [&](const std::string& name, const TensorView& view) {
    out.emplace_back(text("{}, {}", shards_[shard].name, name), view);
  };
  add("master", shards_[shard].master);
  if (types_.working) add("working", shards_[shard].working);
  for (std::size_t i = 0; i < state_names_.size(); ++i) add(state_names_[i], states_[shard][i]);
  return out;
}

void Stepper::add_tensors(Tensors& whole, std::size_t shard) const {
  const Part& part = parts_[shard];
  for (const auto& [name, view] : views_of(shard)) {
    TensorBytes& tensor = whole[name];
    const std::size_t width = bytes_of(view.dtype());
    tensor.dtype = view.dtype();
    tensor.bytes.resize(static_cast<std::size_t>(part.spec.global.elements()) * width);
    for (std::int64_t i = 0; i < part.elements; ++i)
      std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(part.global(i)) * width,
                  view.as<std::byte>() + static_cast<std::size_t>(i) * width, width);
  }
}

void Stepper::add_to(Tensors& whole) const {
  for (std::size_t i = 0; i < shards_.size(); ++i) add_tensors(whole, i);
}

Tensors Stepper::tensors() const {
  Tensors out;
  add_to(out);
  return out;
}

Tensors Stepper::tensors_of(std::size_t shard) const {
  Tensors out;
  add_tensors(out, shard);
  return out;
}

std::vector<std::string> Stepper::overwritten() const {
  std::vector<std::string> out;
  for (const auto& [name, memory] : memory_)
    if (!memory->is_intact()) out.push_back(name);
  if (!operation_scratch_->is_intact()) out.emplace_back("the scratch memory of operations");
  return out;
}

} // namespace triax::conformance
