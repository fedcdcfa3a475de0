// SPDX-License-Identifier: Apache-2.0
// Sends and collects the scalars of a step.
#include "executor/step_reductions.hpp"

#include <cmath>
#include <cstddef>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// Gathers the group's parts in order; without a group, copies the rank's own.
void gather(const char* axis, const TensorView& own, const TensorView& all, const ValueContext& context) {
  if (Communicator* group = context.groups.find(axis)) {
    group->wait(group->all_gather(own, all.flat(), context.stream, context.action), context.stream);
  } else {
    context.device.copy(all.flat(), own, context.stream);
  }
}

} // namespace

StepReductions::StepReductions(const BatchShape& batch, const ValueSources& sources, const Parameters& parameters)
    : batch_(batch),
      sources_(sources),
      parameters_(parameters),
      most_(static_cast<std::int64_t>(parameters.most_on_a_rank())) {}

template <class Visit>
void StepReductions::for_each_square(Visit visit) const {
  for (const GlobalParameter& parameter : parameters_.global()) {
    const std::int64_t of_rank = std::int64_t{parameter.rank} * sources_.tensor * most_;
    const std::int64_t shards = parameter.spec->dim < 0 ? 1 : sources_.tensor;
    for (std::int64_t shard = 0; shard < shards; ++shard)
      visit(parameter, of_rank + shard * most_ + static_cast<std::int64_t>(parameter.index));
  }
}

void StepReductions::assign_memory(RankMemory& memory) {
  const auto assign = [&memory, this](Gathered& values, std::int64_t group, std::int64_t count) {
    const Shape all{sources_.pipeline, group, count};
    values.of_group = memory.values.tensor(DType::f64, {group, count});
    values.of_all = memory.values.tensor(DType::f64, all);
    values.on_host = memory.staging.tensor(DType::f64, all);
  };
  const Shape one{static_cast<std::int64_t>(sizeof(StepScalars))};
  scalars_ = memory.values.tensor(DType::u8, one);
  host_scalars_ = memory.staging.tensor(DType::u8, one);
  host_rate_ = memory.staging.tensor(DType::f32, {1});
  std::int64_t in_order = 0;
  for_each_square([&in_order](const GlobalParameter&, std::int64_t) { ++in_order; });
  order_ = memory.values.tensor(DType::i32, {in_order});
  host_order_ = memory.staging.tensor(DType::i32, {in_order});
  own_squares_ = memory.values.tensor(DType::f64, {most_});
  assign(squares_, sources_.tensor, most_);
  assign(losses_, batch_.data_size, batch_.microbatches * batch_.micro);
  square_of_.clear();
  for (std::int64_t i = 0; i < most_; ++i) square_of_.push_back(own_squares_.slice(0, i, i + 1));
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

void StepReductions::add_squares(const ValueContext& context) const {
  const std::vector<Parameter>& own = parameters_.all();
  for (std::size_t i = 0; i < own.size(); ++i)
    context.kernels.sum_squares({square_of_[i], without_padding(own[i].gradient, *own[i].spec)},
                                {context.stream, context.scratch});
}

void StepReductions::collect(const TensorView& own, const char* axis, const Gathered& values,
                             const ValueContext& context) {
  gather(axis, own, values.of_group, context);
  gather("pipeline", values.of_group.flat(), values.of_all, context);
  context.device.download(values.on_host, values.of_all, context.stream);
}

void StepReductions::collect_losses(const Batches& batches, const ValueContext& context) {
  collect(batches.losses(), "data", losses_, context);
}

void StepReductions::collect_squares(const ValueContext& context) {
  collect(own_squares_, "tensor", squares_, context);
}

void StepReductions::decide(double clip_grad, const LossScaling& scaling, const ValueContext& context) {
  context.kernels.step_control(
      {squares_.of_all, order_, losses_.of_all.at(sources_.loss_rank), scalars_.as<StepScalars>(), clip_grad, scaling},
      {context.stream, context.scratch});
  context.device.download(host_scalars_, scalars_, context.stream);
}

double StepReductions::loss_sum(std::int64_t first) const {
  const std::int64_t per_rank = batch_.microbatches * batch_.micro;
  const auto* losses = losses_.on_host.at(sources_.loss_rank).as<double>();
  double sum = 0;
  for (std::int64_t sample = 0; sample < batch_.global(); ++sample) {
    const std::int64_t microbatch = sample / batch_.micro;
    const std::int64_t rank = microbatch % batch_.data_size, k = microbatch / batch_.data_size;
    const double loss = losses[rank * per_rank + k * batch_.micro + sample % batch_.micro];
    if (!std::isfinite(loss))
      throw Error(text("the loss of sample {} (microbatch {} of data rank {}) is {}", first + sample, k, rank,
                       std::isnan(loss) ? "not a number" : "infinite"));
    sum += loss;
  }
  return sum;
}

std::string StepReductions::what_is_not_finite() const {
  const auto* squares = squares_.on_host.as<double>();
  const GlobalParameter* found = nullptr;
  for_each_square([&](const GlobalParameter& parameter, std::int64_t index) {
    if (!found && !std::isfinite(squares[index])) found = &parameter;
  });
  return found ? text("the gradient of {} is not finite", found->name) : "the norm of the gradient is not finite";
}

} // namespace triax::executor
