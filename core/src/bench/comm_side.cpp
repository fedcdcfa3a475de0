// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_side.hpp"

#include <algorithm>
#include <cstddef>

#include "bench/byte_sizes.hpp"
#include "triax/kernels.hpp"
#include "triax/log.hpp"
#include "triax/registration.hpp"

namespace triax::bench {

namespace {

std::size_t buffer_bytes(std::int64_t elements, DType dtype) {
  return Arena::aligned(static_cast<std::size_t>(elements) * bytes_of(dtype));
}

std::int64_t elements_of(const CommPlan& plan, std::int64_t bytes) {
  return bytes / static_cast<std::int64_t>(bytes_of(plan.dtype));
}

} // namespace

CommSide::CommSide(const CommPlan& plan, const Side& side, const RankSeat& seat)
    : plan_(plan),
      side_(side),
      rank_(seat.rank),
      layout_(Layout::ptd(1, plan.ranks, 1)),
      values_(plan.operation, plan.dtype, plan.ranks),
      messages_(plan.operation == CommOperation::send ? std::max<std::int64_t>(plan.window / 2, 1) : 1),
      device_(make_device(seat)),
      backend_(plugin::create<CommBackend>(*side.choice.library, {side.choice.options, *seat.log, layout_, rank_, 1},
                                           side.choice.folders)) {
  for (const char* name : {"bench", "bench, second half"})
    if (streams_.empty() || (plan.operation == CommOperation::send && plan.window > 1))
      streams_.push_back(device_->make_stream(name));
  const CommShape largest = shape_of(plan.operation, elements_of(plan, plan.sizes.back()), plan.ranks);
  const std::size_t in = buffer_bytes(largest.in, plan.dtype), out = buffer_bytes(largest.out, plan.dtype);
  memory_ = device_->allocate(in + out, MemoryKind::device);
  if (!is_on_host()) staging_ = device_->allocate(std::max(in, out), MemoryKind::pinned);
}

std::unique_ptr<Device> CommSide::make_device(const RankSeat& seat) {
  if (!seat.kernels) return make_host_device();
  const config::PluginChoice& choice = *seat.kernels;
  kernels_ = plugin::create<KernelSet>(*choice.library, {choice.options, *seat.log, layout_, rank_, 1});
  DeviceRequest request;
  request.local_rank = seat.local_rank;
  request.local_ranks = seat.local_ranks;
  return (*kernels_)->make_device(request);
}

void CommSide::join(const std::string& name, Store& store, Deadline deadline) {
  backend_->start(*device_);
  Group group = layout_.world_group(rank_);
  group.id += "." + name;
  std::unique_ptr<Communicator> joined = backend_->join(group, store, deadline);
  if (auto* const registration = find_extension<Registration>(*joined))
    registration->add(memory_->data(), memory_->bytes());
  const std::lock_guard lock(mutex_);
  communicator_ = std::move(joined);
  if (device_->abort_flag().raised()) communicator_->abort(device_->abort_flag().reason());
}

void CommSide::set_size(std::int64_t bytes) {
  bytes_ = bytes;
  const std::int64_t elements = elements_of(plan_, bytes);
  const CommShape shape = shape_of(plan_.operation, elements, plan_.ranks);
  auto* const data = static_cast<std::byte*>(memory_->data());
  in_ = TensorView(data, plan_.dtype, {shape.in});
  out_ = TensorView(data + buffer_bytes(shape.in, plan_.dtype), plan_.dtype, {shape.out});
  if (plan_.operation == CommOperation::broadcast) in_ = out_;
  const auto fill = [this](const TensorView& view) { values_.write_input(rank_, view); };
  write(in_, fill);
  collective_ = collective_of(plan_.operation, plan_.dtype, elements, plan_.ranks);
  set_transfers();
}

/// The messages of a send use the same buffer.
void CommSide::set_transfers() {
  const int next = (rank_ + 1) % plan_.ranks, previous = (rank_ + plan_.ranks - 1) % plan_.ranks;
  const Transfer send{Direction::send, next, 0, in_}, receive{Direction::receive, previous, 0, out_};
  if (plan_.operation == CommOperation::exchange) transfers_ = {send, receive};
  if (plan_.operation == CommOperation::send)
    transfers_.assign(static_cast<std::size_t>(messages_), rank_ % 2 == 0 ? send : receive);
}

Work CommSide::post() {
  Stream& stream = *streams_[posts_++ % streams_.size()];
  if (is_point_to_point(plan_.operation)) return communicator_->exchange(transfers_, stream);
  return communicator_->post(collective_, in_, out_, stream);
}

void CommSide::finish(Deadline deadline) {
  for (const std::unique_ptr<Stream>& stream : streams_) device_->wait(stream->record(), deadline);
}

/// Runs `fill` on host memory, and moves it to the device.
void CommSide::write(const TensorView& to, const std::function<void(const TensorView&)>& fill) {
  if (!staging_) return fill(to);
  const TensorView host(staging_->data(), to.dtype(), to.shape());
  fill(host);
  device_->upload(to, host, *streams_.front());
  finish(deadline_in(plan_.timeout_s));
}

void CommSide::clear_output() {
  const bool has_input = plan_.operation == CommOperation::broadcast; // the data of the root are in its output
  write(out_,
        [&](const TensorView& view) { has_input ? values_.write_input(rank_, view) : values_.write_invalid(view); });
}

void CommSide::check_output() {
  if (plan_.operation == CommOperation::send && rank_ % 2 == 0) return; // it receives nothing
  TensorView host = out_;
  if (staging_) {
    host = TensorView(staging_->data(), out_.dtype(), out_.shape());
    device_->download(host, out_, *streams_.front());
    finish(deadline_in(plan_.timeout_s));
  }
  const std::optional<WrongElement> wrong = values_.find_wrong(rank_, host);
  if (!wrong) return;
  throw Error(text("wrong result: element {} of the output is {}, expected {}; {} of {} elements are wrong",
                   wrong->element, wrong->got, wrong->expected, wrong->wrong_elements, out_.elements()),
              where(), "this is a defect of the communicator: its tests should find it too");
}

std::string CommSide::where() const {
  return text("{}, {} of {} bytes of {}", side_.choice.name, name_of(plan_.operation), bytes_, name_of(plan_.dtype));
}

void CommSide::abort(std::string_view why) noexcept {
  device_->abort_flag().raise(why);
  const std::lock_guard lock(mutex_);
  if (communicator_) communicator_->abort(why);
}

} // namespace triax::bench
