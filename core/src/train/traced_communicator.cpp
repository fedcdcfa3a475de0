// SPDX-License-Identifier: Apache-2.0
#include "train/traced_communicator.hpp"

#include <algorithm>

namespace triax::train {

/// Calls `shape()` only if the call is recorded.
template <class Shape, class Post>
Work TracedCommunicator::traced(Shape shape, Stream& stream, Post post) {
  if (!trace_.records_call()) return post();
  const Clock::time_point posted = Clock::now();
  const Work work = post();
  trace_.called(shape(), posted, work, stream);
  return work;
}

Work TracedCommunicator::do_collective(const Collective& collective, const TensorView& in, const TensorView& out,
                                       Stream& stream, ActionId action) {
  return traced([&] { return shape_of(collective, out); }, stream,
                [&] { return inner_.post(collective, in, out, stream, action); });
}

Work TracedCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  return traced([&] { return shape_of(transfers); }, stream,
                [&] { return inner_.exchange(transfers, stream, action); });
}

CallShape TracedCommunicator::shape_of(const Collective& collective, const TensorView& out) const {
  const bool gathers = collective.kind == Collective::Kind::all_gather;
  const std::size_t bytes =
      gathers ? out.bytes() : static_cast<std::size_t>(collective.elements) * bytes_of(collective.dtype);
  const int root =
      collective.kind == Collective::Kind::broadcast ? group().ranks[static_cast<std::size_t>(collective.root)] : -1;
  return {name_of(collective.kind), group().axis.c_str(), root, bytes};
}

CallShape TracedCommunicator::shape_of(std::span<const Transfer> transfers) const {
  CallShape out{"exchange", group().axis.c_str()};
  if (transfers.empty()) return out;
  const Transfer& first = transfers.front();
  std::size_t sent = 0, received = 0;
  for (const Transfer& transfer : transfers)
    (transfer.direction == Direction::send ? sent : received) += transfer.view.bytes();
  out.bytes = std::max(sent, received);
  const auto alike = [&first](const Transfer& of) { return of.direction == first.direction; };
  if (std::ranges::all_of(transfers, alike)) out.name = first.direction == Direction::send ? "send" : "receive";
  const auto one_peer = [&first](const Transfer& of) { return of.peer == first.peer; };
  if (std::ranges::all_of(transfers, one_peer)) out.peer = group().ranks[static_cast<std::size_t>(first.peer)];
  return out;
}

} // namespace triax::train
