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

StepValues::StepValues(const BatchShape& batch, int tensor_size, std::size_t parameters)
    : batch_(batch), tensor_(tensor_size), parameters_(static_cast<std::int64_t>(parameters)) {}

void StepValues::place(RankMemory& memory) {
  const Shape one{static_cast<std::int64_t>(sizeof(StepScalars))};
  const Shape losses{batch_.data_size, batch_.microbatches * batch_.micro};
  scalars_ = memory.values.tensor(DType::u8, one);
  squares_ = memory.values.tensor(DType::f64, {parameters_});
  gathered_squares_ = memory.values.tensor(DType::f64, {tensor_, parameters_});
  gathered_losses_ = memory.values.tensor(DType::f64, losses);
  host_scalars_ = memory.staging.tensor(DType::u8, one);
  host_squares_ = memory.staging.tensor(DType::f64, {tensor_, parameters_});
  host_losses_ = memory.staging.tensor(DType::f64, losses);
  square_of_.clear();
  for (std::int64_t i = 0; i < parameters_; ++i) square_of_.push_back(squares_.slice(0, i, i + 1));
}

void StepValues::send(const StepScalars& scalars, Device& device, Stream& stream, Deadline deadline) {
  device.wait(sent_, deadline);
  *host_scalars_.as<StepScalars>() = scalars;
  device.upload(scalars_, host_scalars_, stream);
  sent_ = stream.record();
}

void StepValues::add_squares(const std::vector<Parameter>& parameters, const ValueContext& context) const {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    context.kernels.sum_squares({square_of_[i], without_padding(parameters[i].gradient, *parameters[i].spec)},
                                {context.stream, context.scratch});
}

void StepValues::collect(const Batches& batches, bool squares, const ValueContext& context) {
  gather("data", batches.losses(), gathered_losses_, context);
  context.device.download(host_losses_, gathered_losses_, context.stream);
  if (squares) {
    gather("tensor", squares_, gathered_squares_, context);
    context.device.download(host_squares_, gathered_squares_, context.stream);
  }
  context.device.wait(context.stream.record(), context.deadline);
}

double StepValues::loss_sum(std::int64_t first) const {
  const std::int64_t per_rank = batch_.microbatches * batch_.micro;
  const auto* losses = host_losses_.as<double>();
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

double StepValues::norm(const std::vector<Parameter>& parameters) const {
  const auto* squares = host_squares_.as<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < parameters_; ++i) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(i)];
    const std::int64_t shards = parameter.spec->dim < 0 ? 1 : tensor_;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const double square = squares[shard * parameters_ + i];
      if (!std::isfinite(square)) throw Error(text("the gradient of {} is not finite", parameter.name));
      sum += square;
    }
  }
  if (!std::isfinite(sum)) throw Error("the norm of the gradient is not finite");
  return std::sqrt(sum);
}

} // namespace triax::executor
