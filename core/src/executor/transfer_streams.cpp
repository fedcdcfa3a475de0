// SPDX-License-Identifier: Apache-2.0
// Assigns transfers to streams.
#include "executor/transfer_streams.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::executor {

using schedule::ProgramAction;

TransferStreams::TransferStreams(Device& device, const Groups& groups,
                                 std::span<const schedule::Program* const> programs,
                                 const schedule::Assumptions& assumptions)
    : device_(device), pipeline_(groups.find(kPipelineAxis)) {
  using Order = CommTraits::Order;
  std::size_t actions = 0;
  reductions_ = make_stream("gradient reduction");
  const bool serial = assumptions.edges.order == Order::serial;
  // The stream of all serial transfers.
  Stream* const queue = assumptions.reductions.order == Order::serial ? reductions_ : nullptr;
  Stream* const one = !serial ? nullptr : queue ? queue : make_stream(std::string(kPipelineAxis));
  for (const schedule::Program* program : programs) {
    TRIAX_REQUIRE(program->posts() == schedule::Program::Posts::one_by_one,
                  "the program of pipeline rank {} posts its transfers in sets, which is not supported here",
                  program->rank());
    actions = std::max(actions, program->actions().size());
    if (program->boundaries() == schedule::Boundaries::scattered) scattered_over_ = groups.find(kTensorAxis);
    for (const ProgramAction& action : program->actions()) {
      if (action.peer < 0 || edges_.contains(edge_of(action))) continue;
      TRIAX_REQUIRE(pipeline_, "rank {} sends to rank {} of the pipeline and has no group for it", program->rank(),
                    action.peer);
      const Edge edge = edge_of(action);
      edges_[edge] = one ? one : make_stream(text("{} pipeline rank {}", edge.second ? "to" : "from", edge.first));
    }
  }
  events_.resize(actions);
  constexpr std::size_t kMaxTensors = 16; // of a boundary, before the list grows
  set_.reserve(kMaxTensors);
}

Stream* TransferStreams::make_stream(const std::string& name) {
  return streams_.emplace_back(device_.make_stream(name)).get();
}

TransferStreams::Edge TransferStreams::edge_of(const ProgramAction& action) {
  return {action.peer, schedule::sends(action.kind)};
}

void TransferStreams::send_or_receive(const ProgramAction& action, ActionId id, Views views, Stream& compute) {
  const Edge edge = edge_of(action);
  Stream& stream = *edges_.at(edge);
  stream.wait(compute.record());
  set_.clear();
  for (const TensorView& view : views)
    set_.push_back({edge.second ? Direction::send : Direction::receive, action.peer, 0, part(view)});
  events_[id] = pipeline_->exchange(set_, stream, id).event;
}

TensorView TransferStreams::part(const TensorView& view) const {
  if (!scattered_over_) return view;
  const std::int64_t elements = view.elements() / scattered_over_->size();
  return view.flat().slice(0, elements * scattered_over_->rank(), elements * (scattered_over_->rank() + 1));
}

void TransferStreams::gather(ActionId id, Views views, Stream& compute) {
  TRIAX_REQUIRE(scattered_over_, "action {} gathers, but boundaries are not scattered over a tensor group", id);
  for (const TensorView& view : views)
    scattered_over_->wait(scattered_over_->all_gather(part(view), view, compute, id), compute);
  if (device_.kind() == DeviceKind::host) compute.ready(); // this wait is communication, not waiting for another stage
}

Stream& TransferStreams::begin_reduction(Stream& compute) {
  reductions_->wait(compute.record());
  return *reductions_;
}

void TransferStreams::finish(Deadline deadline) {
  for (const std::unique_ptr<Stream>& stream : streams_) device_.wait(stream->record(), deadline);
}

} // namespace triax::executor
