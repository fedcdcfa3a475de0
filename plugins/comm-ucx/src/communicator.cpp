// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <sched.h>

#include <algorithm>

#include "reduce.hpp"

namespace triax::comm_ucx {

namespace {

/// Calls of each kind at the start. A rank needs more only if it reduces the buckets of more layers at once.
constexpr std::size_t kCalls = 64;

Signature signature_of(Kind kind, const TensorView& in, Reduce reduce = Reduce::sum, int root = 0) {
  Signature signature;
  signature.kind = kind;
  signature.dtype = static_cast<std::uint8_t>(in.dtype());
  signature.reduce = static_cast<std::uint8_t>(reduce);
  signature.root = root;
  signature.elements = in.elements();
  return signature;
}

} // namespace

UcxCommunicator::UcxCommunicator(const Group& group, std::shared_ptr<PeerEndpoints> links)
    : Communicator(group),
      links_(*links),
      transport_(links->transport()),
      plan_(group.size(), links->transport().staging() != nullptr),
      pool_(std::make_shared<Pool>()) {
  pool_->links = std::move(links);
  idle_reduction();
  idle_movement();
  idle_exchange();
  transport_.device().add_source(*this);
}

UcxCommunicator::~UcxCommunicator() {
  transport_.device().remove_source(*this);
  for_queued([&](Call& call) {
    call.end_now();
    call.keep_alive(pool_);
  });
  links_.close();
  if (transport_.retired()) transport_.keep(pool_);
}

template <class Body>
void UcxCommunicator::for_queued(Body body) {
  for (const auto& call : pool_->reductions)
    if (call->queued()) body(*call);
  for (const auto& call : pool_->movements)
    if (call->queued()) body(*call);
  for (const auto& call : pool_->exchanges)
    if (call->queued()) body(*call);
}

template <class Some, class Make>
Some& UcxCommunicator::idle(std::vector<std::unique_ptr<Some>>& calls, Make make) {
  for (const auto& call : calls)
    if (call->reusable()) return *call;
  // Add many at once: the number in flight depends on the timing of other ranks.
  const std::size_t first = calls.size(), more = std::max(first, kCalls);
  for (std::size_t i = 0; i < more; ++i) calls.push_back(make());
  return *calls[first];
}

Reduction& UcxCommunicator::idle_reduction() {
  return idle(pool_->reductions, [&] { return std::make_unique<Reduction>(links_, plan_); });
}

Movement& UcxCommunicator::idle_movement() {
  return idle(pool_->movements, [&] { return std::make_unique<Movement>(links_, plan_); });
}

Exchange& UcxCommunicator::idle_exchange() {
  return idle(pool_->exchanges, [&] {
    auto call = std::make_unique<Exchange>(links_);
    call->reserve(most_transfers_);
    return call;
  });
}

/// Creates a lane at the first call on a stream.
Lane& UcxCommunicator::lane(const Stream& stream) {
  for (const auto& lane : pool_->lanes)
    if (lane->stream == &stream) return *lane;
  pool_->lanes.push_back(std::make_unique<Lane>(stream, transport_.device(), size(), index(), plan_));
  return *pool_->lanes.back();
}

void UcxCommunicator::progress() noexcept {
  if (!links_.aborted()) return;
  links_.announce();
  for_queued([](Call& call) { call.fail_when_quiet(); });
}

void UcxCommunicator::abort(std::string_view why) noexcept {
  links_.abort(text("rank {} aborted group {}: {}", links_.rank(index()), links_.id(), why));
}

Work UcxCommunicator::refused(ActionId action) {
  --stats_.ops; // do_* is called after it was counted; a failed post is not an operation
  if (!dead_event_.state()) {
    dead_event_ = dead_.arm();
    dead_.fail(links_.reason());
  }
  return {dead_event_, action};
}

void UcxCommunicator::count(Bytes bytes) {
  stats_.bytes_out += bytes.out;
  stats_.bytes_in += bytes.in;
}

Work UcxCommunicator::post(Collective& call, const Signature& signature, const TensorView& in, const TensorView& out,
                           Bytes bytes, Stream& stream, ActionId action) {
  if (links_.aborted()) return refused(action);
  if (Staging* staging = transport_.staging()) {
    const auto [direct, needed] = call.staging_need(signature);
    call.set_places(direct, direct ? staging->device_places(stream, needed) : staging->places(stream, needed));
  }
  const Event event = call.start(signature, in, out, ++posted_, lane(stream));
  count(bytes);
  stream.post(call);
  return {event, action};
}

void UcxCommunicator::check_reducible(const TensorView& view) const {
  if (can_reduce(view.dtype())) return;
  throw Error(text("{} cannot be reduced", triax::to_text(view)), text("group {}", group().id),
              "reduce f32, f64, bf16, f16, i32 or i64");
}

Work UcxCommunicator::do_all_reduce(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                    ActionId action) {
  check_reducible(in);
  const std::int64_t n = size(), all = in.elements();
  std::int64_t moved = all * (n - 1); // small: the whole vector to every other member
  if (!Reduction::small(plan_, in.bytes())) {
    // Out: the peers' slices of `in`, and this member's reduced slice to each peer. In: as many bytes.
    const std::int64_t own = all * (index() + 1) / n - all * index() / n;
    moved = all - own + own * (n - 1);
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(moved) * bytes_of(in.dtype());
  return post(idle_reduction(), signature_of(Kind::all_reduce, in, reduce), in, out, {bytes, bytes}, stream, action);
}

Work UcxCommunicator::do_reduce_scatter(const TensorView& in, const TensorView& out, Reduce reduce, Stream& stream,
                                        ActionId action) {
  check_reducible(in);
  const std::uint64_t bytes = in.bytes() - out.bytes();
  return post(idle_reduction(), signature_of(Kind::reduce_scatter, in, reduce), in, out, {bytes, bytes}, stream,
              action);
}

Work UcxCommunicator::do_all_gather(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  const std::uint64_t bytes = out.bytes() - in.bytes();
  return post(idle_movement(), signature_of(Kind::all_gather, in), in, out, {bytes, bytes}, stream, action);
}

Work UcxCommunicator::do_all_to_all(const TensorView& in, const TensorView& out, Stream& stream, ActionId action) {
  const std::uint64_t bytes = in.bytes() - in.bytes() / static_cast<std::uint64_t>(size());
  return post(idle_movement(), signature_of(Kind::all_to_all, in), in, out, {bytes, bytes}, stream, action);
}

Work UcxCommunicator::do_broadcast(const TensorView& view, int root, Stream& stream, ActionId action) {
  const bool sends = index() == root;
  const Bytes bytes{sends ? view.bytes() * static_cast<std::uint64_t>(size() - 1) : 0, sends ? 0 : view.bytes()};
  return post(idle_movement(), signature_of(Kind::broadcast, view, Reduce::sum, root), view, view, bytes, stream,
              action);
}

Work UcxCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  if (links_.aborted()) return refused(action);
  for (const Transfer& transfer : transfers) {
    if (transfer.channel >= 0 && transfer.channel < kMaxChannels) continue;
    throw Error(text("exchange: channel {} is outside of 0 to {}", transfer.channel, kMaxChannels - 1),
                text("group {}", group().id), "number channels from 0");
  }
  if (transfers.size() > most_transfers_) {
    // Any exchange of the pool may be used for the next set of this size.
    most_transfers_ = transfers.size();
    for (const auto& call : pool_->exchanges) call->reserve(most_transfers_);
  }
  Exchange& call = idle_exchange();
  call.clear();
  for (const Transfer& transfer : transfers) {
    call.add(transfer, port(transfer).next++);
    const std::uint64_t bytes = transfer.view.bytes();
    count(transfer.direction == Direction::send ? Bytes{bytes, 0} : Bytes{0, bytes});
  }
  if (transport_.direct()) {
    call.go_direct();
  } else if (Staging* staging = transport_.staging()) {
    call.set_places(staging->places(stream, call.staging_bytes()));
  }
  const Event event = call.start();
  stream.post(call);
  return {event, action};
}

UcxCommunicator::Port& UcxCommunicator::port(const Transfer& transfer) {
  for (Port& port : ports_) {
    if (port.direction == transfer.direction && port.peer == transfer.peer && port.channel == transfer.channel) {
      return port;
    }
  }
  return ports_.emplace_back(Port{transfer.direction, transfer.peer, transfer.channel, 0});
}

void UcxCommunicator::barrier(Deadline deadline) {
  const auto place = [&] { return text("barrier of group {}", links_.id()); };
  const auto wait_for = [&](int member, auto ready) {
    while (!ready()) {
      if (links_.aborted()) throw Error(links_.reason(), place());
      transport_.device().abort_flag().check();
      if (links_.left(member) && !ready()) throw Error(text("rank {} has left", links_.rank(member)), place());
      if (Clock::now() >= deadline) {
        throw Error(text("timed out waiting for rank {}", links_.rank(member)), place(),
                    "the rank may be slow or lost; train.stall_timeout_s sets the timeout");
      }
      if (!transport_.device().progress()) sched_yield();
    }
  };
  if (links_.aborted()) throw Error(links_.reason(), place());
  // Messages of the previous barrier may still be in flight.
  for (int member = 0; member < size(); ++member) {
    wait_for(member, [&] { return !links_.announcing(member); });
  }
  links_.announce_barrier();
  const std::uint64_t turn = ++barriers_;
  for (int member = 0; member < size(); ++member) {
    if (member != index()) wait_for(member, [&] { return links_.barriers(member) >= turn; });
  }
}

} // namespace triax::comm_ucx
