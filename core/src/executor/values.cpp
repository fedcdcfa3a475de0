// Sending and collecting the numbers of a step.
#include "executor/values.hpp"

#include <cmath>

#include "triax/error.hpp"

namespace triax::executor {

namespace {

/// The group's parts one after another; a rank alone has its own.
void gather(const char* axis, const TensorView& own, const TensorView& all, const ValueContext& context) {
  if (Communicator* group = context.groups.find(axis)) {
    group->wait(group->all_gather(own, all.flat(), context.stream, context.action), context.stream);
  } else {
    context.device.copy(all.flat(), own, context.stream);
  }
}

} // namespace

StepValues::StepValues(const BatchShape& batch, const ValueSources& sources, const Parameters& parameters)
    : batch_(batch),
      sources_(sources),
      parameters_(parameters),
      most_(static_cast<std::int64_t>(parameters.most_on_a_rank())) {}

void StepValues::place(RankMemory& memory) {
  const auto place = [&memory, this](Gathered& values, std::int64_t group, std::int64_t count) {
    const Shape all{sources_.pipeline, group, count};
    values.of_group = memory.values.tensor(DType::f64, {group, count});
    values.of_all = memory.values.tensor(DType::f64, all);
    values.on_host = memory.staging.tensor(DType::f64, all);
  };
  const Shape one{static_cast<std::int64_t>(sizeof(StepScalars))};
  scalars_ = memory.values.tensor(DType::u8, one);
  host_scalars_ = memory.staging.tensor(DType::u8, one);
  own_squares_ = memory.values.tensor(DType::f64, {most_});
  place(squares_, sources_.tensor, most_);
  place(losses_, batch_.data_size, batch_.microbatches * batch_.micro);
  square_of_.clear();
  for (std::int64_t i = 0; i < most_; ++i) square_of_.push_back(own_squares_.slice(0, i, i + 1));
}

void StepValues::send(const StepScalars& scalars, Device& device, Stream& stream, Deadline deadline) {
  device.wait(sent_, deadline);
  *host_scalars_.as<StepScalars>() = scalars;
  device.upload(scalars_, host_scalars_, stream);
  sent_ = stream.record();
}

void StepValues::add_squares(const ValueContext& context) const {
  const std::vector<Parameter>& own = parameters_.all();
  for (std::size_t i = 0; i < own.size(); ++i)
    context.kernels.sum_squares({square_of_[i], without_padding(own[i].gradient, *own[i].spec)},
                                {context.stream, context.scratch});
}

void StepValues::collect(const TensorView& own, const char* axis, const Gathered& values, const ValueContext& context) {
  gather(axis, own, values.of_group, context);
  gather("pipeline", values.of_group.flat(), values.of_all, context);
  context.device.download(values.on_host, values.of_all, context.stream);
}

void StepValues::collect(const Batches& batches, bool squares, const ValueContext& context) {
  collect(batches.losses(), "data", losses_, context);
  if (squares) collect(own_squares_, "tensor", squares_, context);
  context.device.wait(context.stream.record(), context.deadline);
}

double StepValues::loss_sum(std::int64_t first) const {
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

double StepValues::norm() const {
  double sum = 0;
  for (const GlobalParameter& parameter : parameters_.global()) {
    const auto* squares = squares_.on_host.at(parameter.rank).as<double>();
    const std::int64_t shards = parameter.spec->dim < 0 ? 1 : sources_.tensor;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const double square = squares[shard * most_ + static_cast<std::int64_t>(parameter.index)];
      if (!std::isfinite(square)) throw Error(text("the gradient of {} is not finite", parameter.name));
      sum += square;
    }
  }
  if (!std::isfinite(sum)) throw Error("the norm of the gradient is not finite");
  return std::sqrt(sum);
}

} // namespace triax::executor
