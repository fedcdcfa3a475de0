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

Work TracedCommunicator::do_all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                       ActionId action) {
  return traced(
      [&] {
        return CallShape{"all_reduce", group().axis.c_str(), -1, in.bytes()};
      },
      stream, [&] { return inner_.all_reduce(in, out, reduce, stream, action); });
}

Work TracedCommunicator::do_reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                           ActionId action) {
  return traced(
      [&] {
        return CallShape{"reduce_scatter", group().axis.c_str(), -1, in.bytes()};
      },
      stream, [&] { return inner_.reduce_scatter(in, out, reduce, stream, action); });
}

Work TracedCommunicator::do_all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  return traced(
      [&] {
        return CallShape{"all_gather", group().axis.c_str(), -1, out.bytes()};
      },
      stream, [&] { return inner_.all_gather(in, out, stream, action); });
}

Work TracedCommunicator::do_all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  return traced(
      [&] {
        return CallShape{"all_to_all", group().axis.c_str(), -1, in.bytes()};
      },
      stream, [&] { return inner_.all_to_all(in, out, stream, action); });
}

Work TracedCommunicator::do_broadcast(const TensorView& view, int root, Stream& stream, ActionId action) {
  return traced(
      [&] {
        return CallShape{"broadcast", group().axis.c_str(), group().ranks[static_cast<std::size_t>(root)],
                         view.bytes()};
      },
      stream, [&] { return inner_.broadcast(view, root, stream, action); });
}

Work TracedCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  return traced([&] { return shape_of(transfers); }, stream,
                [&] { return inner_.exchange(transfers, stream, action); });
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
