// SPDX-License-Identifier: Apache-2.0
// Sends and collects the scalars of a step.
#include "executor/step_reductions.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// The axes of more than one rank that divide layers or cut a parameter, in the order of the layout.
std::vector<std::string> axes_of_squares(const Layout& layout, const Parameters& parameters) {
  std::vector<std::string> out;
  for (const Axis& axis : layout.axes()) {
    const bool cuts = std::ranges::any_of(parameters.global(), [&](const GlobalParameter& parameter) {
      return std::ranges::find(parameter.spec->cuts, axis.name, &Cut::axis) != parameter.spec->cuts.end();
    });
    if (axis.size > 1 && (cuts || axis.divides == Divides::layers)) out.push_back(axis.name);
  }
  return out;
}

std::vector<std::string> axes_of_losses(const Layout& layout) {
  std::vector<std::string> out = layout.axes_dividing({Divides::samples, Divides::positions});
  for (std::string& axis : layout.axes_dividing({Divides::layers})) out.push_back(std::move(axis));
  return out;
}

/// By rank of the axes that divide samples: the members of the group of axes_of_losses() that have its samples.
std::vector<std::vector<std::int64_t>> members_by_samples(const Layout& layout) {
  const std::vector<std::string> all = layout.axes_dividing({Divides::samples, Divides::positions}),
                                 samples = layout.axes_dividing({Divides::samples});
  const Group members = layout.group(0, all);
  std::vector<std::vector<std::int64_t>> out(layout.group(0, samples).ranks.size());
  for (std::size_t member = 0; member < members.ranks.size(); ++member) {
    const int of = layout.group_rank(members.ranks[member], samples);
    out[static_cast<std::size_t>(of)].push_back(static_cast<std::int64_t>(member));
  }
  return out;
}

} // namespace

StepReductions::StepReductions(const BatchShape& batch, const Layout& layout, int loss_rank,
                               const Parameters& parameters)
    : batch_(batch),
      layout_(layout),
      loss_rank_(loss_rank),
      parameters_(parameters),
      most_(static_cast<std::int64_t>(parameters.most_on_a_rank())),
      members_of_(members_by_samples(layout)) {
  for (const std::string& axis : layout.axes_dividing({Divides::layers})) layers_axis_ = axis;
  squares_.axes = axes_of_squares(layout, parameters);
  losses_.axes = axes_of_losses(layout);
  for (const Axis& axis : layout.axes())
    if (axis.size > 1 && std::ranges::find(losses_.axes, axis.name) == losses_.axes.end())
      other_axes_.push_back(axis.name);
}

template <class Visit>
void StepReductions::for_each_square(Visit visit) const {
  std::vector<std::int64_t> offsets;
  for (const GlobalParameter& parameter : parameters_.global()) {
    // Offsets of the ranks that have a part, the first axis fastest; other ranks have the same values as rank 0.
    offsets.assign(1, 0);
    std::int64_t stride = most_;
    for (const std::string& axis : squares_.axes) {
      const int size = layout_.size(axis);
      if (axis == layers_axis_) {
        for (std::int64_t& offset : offsets) offset += parameter.rank * stride;
      } else if (std::ranges::find(parameter.spec->cuts, axis, &Cut::axis) != parameter.spec->cuts.end()) {
        const std::size_t before = offsets.size();
        for (int part = 1; part < size; ++part)
          for (std::size_t i = 0; i < before; ++i) offsets.push_back(offsets[i] + part * stride);
      }
      stride *= size;
    }
    for (const std::int64_t offset : offsets) visit(parameter, offset + static_cast<std::int64_t>(parameter.index));
  }
}

void StepReductions::assign(Gathered& values, const TensorView& own, RankMemory& memory) const {
  values.over.clear();
  values.all = own;
  for (const std::string& axis : values.axes) {
    values.all = memory.values.tensor(DType::f64, {layout_.size(axis) * values.all.elements()});
    values.over.push_back(values.all);
  }
  values.on_host = memory.staging.tensor(DType::f64, values.all.shape());
}

void StepReductions::assign_memory(const Batches& batches, RankMemory& memory) {
  const Shape one{static_cast<std::int64_t>(sizeof(StepScalars))};
  scalars_ = memory.values.tensor(DType::u8, one);
  host_scalars_ = memory.staging.tensor(DType::u8, one);
  host_rate_ = memory.staging.tensor(DType::f32, {1});
  host_request_ = memory.staging.tensor(DType::f64, {1});
  assign_squares(memory);
  std::int64_t in_order = 0;
  for_each_square([&in_order](const GlobalParameter&, std::int64_t) { ++in_order; });
  order_ = memory.values.tensor(DType::i32, {in_order});
  host_order_ = memory.staging.tensor(DType::i32, {in_order});
  assign(losses_, batches.values(), memory);
}

/// The memory is zeroed when it is allocated. The squares of parts of other ranks stay zero.
void StepReductions::assign_squares(RankMemory& memory) {
  own_squares_ = memory.values.tensor(DType::f64, {most_});
  assign(squares_, own_squares_, memory);
  added_.clear();
  for (const Reduction& reduction : parameters_.reductions()) {
    AddedSquares& added = added_.emplace_back();
    added.group = reduction.group;
    if (reduction.axes.empty()) continue;
    const Shape all{static_cast<std::int64_t>(parameters_.global().size())};
    added.parts = memory.values.tensor(DType::f64, all);
    added.sums = memory.values.tensor(DType::f64, all);
  }
  square_of_.clear();
  for (std::int64_t i = 0; const Parameter& parameter : parameters_.all()) {
    const AddedSquares& added = added_[parameter.reduction];
    const auto global = static_cast<std::int64_t>(parameter.global);
    square_of_.push_back(added.parts.empty() ? own_squares_.slice(0, i, i + 1)
                                             : added.parts.slice(0, global, global + 1));
    ++i;
  }
  for (std::size_t reduction = 0; reduction < added_.size(); ++reduction)
    if (!added_[reduction].parts.empty()) assign_copies(reduction);
}

/// Sums of parameters that follow each other are copied together.
void StepReductions::assign_copies(std::size_t reduction) {
  AddedSquares& added = added_[reduction];
  const std::vector<Parameter>& all = parameters_.all();
  const auto has = [&](std::size_t i) { return i < all.size() && all[i].reduction == reduction; };
  for (std::size_t first = 0; first < all.size(); ++first) {
    if (!has(first)) continue;
    std::size_t end = first + 1;
    while (has(end) && all[end].global == all[end - 1].global + 1) ++end;
    const auto to = static_cast<std::int64_t>(first), from = static_cast<std::int64_t>(all[first].global),
               count = static_cast<std::int64_t>(end - first);
    added.copies.emplace_back(added.sums.slice(0, from, from + count), own_squares_.slice(0, to, to + count));
    first = end - 1;
  }
}

void StepReductions::start(const StepScalars& scalars, Device& device, Stream& stream, Deadline deadline) {
  *host_scalars_.as<StepScalars>() = scalars;
  device.upload(scalars_, host_scalars_, stream);
  auto* next = host_order_.as<std::int32_t>();
  for_each_square([&next](const GlobalParameter&, std::int64_t index) { *next++ = static_cast<std::int32_t>(index); });
  device.upload(order_, host_order_, stream);
  device.wait(stream.record(), deadline);
}

void StepReductions::send_rate(float lr, Device& device, Stream& stream, Deadline deadline) {
  device.wait(sent_, deadline);
  *host_rate_.as<float>() = lr;
  const TensorView rate(scalars_.as<std::byte>() + offsetof(StepScalars, lr), DType::f32, {1});
  device.upload(rate, host_rate_, stream);
  sent_ = stream.record();
}

void StepReductions::send_request(std::int32_t request, const Batches& batches, Device& device, Stream& stream,
                                  Deadline deadline) {
  device.wait(request_sent_, deadline);
  *host_request_.as<double>() = request;
  device.upload(batches.request(), host_request_, stream);
  request_sent_ = stream.record();
}

void StepReductions::add_squares(const ValueContext& context) const {
  for (std::size_t i = 0; const Parameter& parameter : parameters_.all()) {
    const TensorView& square = square_of_[i++];
    const OwnedPart& owned = parameter.owned;
    if (owned.count == 0) continue;
    TensorView gradient = parameter.gradient;
    if (!parameter.scattered)
      gradient = without_padding(gradient, *parameter.spec).flat().slice(0, owned.first, owned.first + owned.count);
    context.kernels.sum_squares({square, gradient}, {context.stream, context.scratch});
  }
  for (const AddedSquares& added : added_) {
    if (added.parts.empty()) continue;
    Communicator* const group = context.groups.find(added.group);
    TRIAX_REQUIRE(group, "there is no communicator of {} for the norm", added.group);
    group->wait(group->all_reduce(added.parts, added.sums, Reduce::sum, context.stream, context.action),
                context.stream);
    for (const auto& [from, to] : added.copies) context.device.copy(to, from, context.stream);
  }
}

void StepReductions::collect(const TensorView& own, const Gathered& values, const ValueContext& context) {
  const TensorView* before = &own;
  for (std::size_t i = 0; i < values.axes.size(); ++i) {
    Communicator* const group = context.groups.find(values.axes[i]);
    TRIAX_REQUIRE(group, "there is no communicator of {} for a value", values.axes[i]);
    group->wait(group->all_gather(*before, values.over[i], context.stream, context.action), context.stream);
    before = &values.over[i];
  }
  context.device.download(values.on_host, values.all, context.stream);
}

void StepReductions::collect_losses(const Batches& batches, const ValueContext& context) {
  const TensorView request = batches.request();
  for (const std::string& axis : other_axes_) {
    Communicator* const group = context.groups.find(axis);
    TRIAX_REQUIRE(group, "there is no communicator of {} for a value", axis);
    group->wait(group->all_reduce(request, request, Reduce::max, context.stream, context.action), context.stream);
  }
  collect(batches.values(), losses_, context);
}

void StepReductions::collect_squares(const ValueContext& context) {
  collect(own_squares_, squares_, context);
}

TensorView StepReductions::of_last_stage(const TensorView& losses) const {
  const std::int64_t stages =
      losses_.axes.empty() || losses_.axes.back() != layers_axis_ ? 1 : layout_.size(layers_axis_);
  const std::int64_t count = losses.elements() / stages;
  return losses.slice(0, stages == 1 ? 0 : loss_rank_ * count, stages == 1 ? count : (loss_rank_ + 1) * count);
}

void StepReductions::decide(double clip_grad, const LossScaling& scaling, const ValueContext& context) {
  context.kernels.step_control(
      {squares_.all, order_, of_last_stage(losses_.all), scalars_.as<StepScalars>(), clip_grad, scaling},
      {context.stream, context.scratch});
  context.device.download(host_scalars_, scalars_, context.stream);
}

/// The loss of a sample of the global batch. Global microbatch k*d + r is the k-th of sample rank r.
double StepReductions::loss_of(std::int64_t sample) const {
  const StepValues of(batch_);
  const std::int64_t microbatch = sample / batch_.micro;
  const std::int64_t rank = microbatch % batch_.sample_ranks, k = microbatch / batch_.sample_ranks;
  const auto* losses = of_last_stage(losses_.on_host).as<double>();
  double sum = 0;
  for (const std::int64_t member : members_of_[static_cast<std::size_t>(rank)])
    sum += losses[of.loss(member, k * batch_.micro + sample % batch_.micro)];
  return sum;
}

std::int32_t StepReductions::largest_request() const {
  const auto* all = losses_.on_host.as<double>();
  const StepValues of(batch_);
  double largest = 0;
  for (std::int64_t rank = 0; rank < losses_.on_host.elements() / of.count(); ++rank)
    largest = std::max(largest, all[of.request(rank)]);
  return static_cast<std::int32_t>(largest);
}

double StepReductions::loss_sum(std::int64_t count) const {
  double sum = 0;
  for (std::int64_t sample = 0; sample < count; ++sample) sum += loss_of(sample);
  return sum;
}

std::string StepReductions::nonfinite_loss(std::int64_t first, std::int64_t count) const {
  for (std::int64_t sample = 0; sample < count; ++sample) {
    const double loss = loss_of(sample);
    if (std::isfinite(loss)) continue;
    const std::int64_t microbatch = sample / batch_.micro;
    return text("the loss of sample {} (microbatch {} of data rank {}) is {}", first + sample,
                microbatch / batch_.sample_ranks, microbatch % batch_.sample_ranks,
                std::isnan(loss) ? "not a number" : "infinite");
  }
  return {};
}

std::string StepReductions::nonfinite_gradient() const {
  const auto* squares = squares_.on_host.as<double>();
  const GlobalParameter* found = nullptr;
  for_each_square([&](const GlobalParameter& parameter, std::int64_t index) {
    if (!found && !std::isfinite(squares[index])) found = &parameter;
  });
  return found ? text("the gradient of {} is not finite", found->name) : "the norm of the gradient is not finite";
}

} // namespace triax::executor
