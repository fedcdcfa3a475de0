// SPDX-License-Identifier: Apache-2.0
#include "faulty_communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <triax/error.hpp>
#include <utility>

namespace triax::comm_faulty {

namespace {

constexpr std::size_t kTasks = 64;

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

/// The k-th send of an edge matches the k-th receive, so transfers of one edge keep their order.
bool same_edge(const Transfer& a, const Transfer& b) {
  return a.direction == b.direction && a.peer == b.peer && a.channel == b.channel;
}

bool has_bytes(const TensorView& view) {
  return view.data() && view.bytes() > 0;
}

/// The view that a member receives in a collective; without data if it receives nothing.
TensorView received_in(const Collective& of, const TensorView& out, int member) {
  const bool sends_only = of.kind == Collective::Kind::broadcast && of.root == member;
  return sends_only ? TensorView() : out;
}

/// One of the views that an exchange receives.
TensorView received_in(std::span<const Transfer> transfers) {
  for (const Transfer& transfer : transfers)
    if (transfer.direction == Direction::receive && has_bytes(transfer.view)) return transfer.view;
  return {};
}

/// A task that is not queued. The pool doubles if there is none.
template <class Task, class Make>
Task& idle(std::vector<std::unique_ptr<Task>>& pool, const Make& make) {
  for (const auto& task : pool)
    if (!task->is_queued()) return *task;
  const std::size_t first = pool.size();
  for (std::size_t i = 0; i < first; ++i) pool.push_back(make());
  return *pool[first];
}

} // namespace

FaultyCommunicator::FaultyCommunicator(std::unique_ptr<Communicator> inner, const CommTraits& traits,
                                       const FaultOptions& options, Device& device, Log& log)
    : Communicator(inner->group()),
      inner_(std::move(inner)),
      options_(options),
      may_overtake_(traits.order == CommTraits::Order::tagged && !traits.stream_ordered),
      device_(device),
      log_(log),
      plan_(options, group()),
      pool_(std::make_shared<Pool>()) {
  for (std::size_t i = 0; i < kTasks; ++i) {
    pool_->holds.push_back(std::make_unique<Hold>(pool_->holding));
    pool_->flips.push_back(std::make_unique<BitFlip>());
  }
  if (options_.fault == Fault::corrupt) device_.add_source(*this);
}

FaultyCommunicator::~FaultyCommunicator() {
  device_.remove_source(*this);
  pool_->holding.is_over.store(true, std::memory_order_release);
  for (const auto& hold : pool_->holds)
    if (hold->is_queued()) hold->keep_alive(pool_);
  for (const auto& flip : pool_->flips) {
    if (!flip->is_queued()) continue;
    const int left = group().ranks[static_cast<std::size_t>(rank())];
    flip->fail(text("rank {} left group {} before its calls were complete", left, group().id));
    flip->keep_alive(pool_);
  }
}

void FaultyCommunicator::abort(std::string_view why) noexcept {
  inner_->abort(why);
  pool_->holding.is_over.store(true, std::memory_order_release);
}

void FaultyCommunicator::progress() noexcept {
  for (const auto& flip : pool_->flips) flip->poll();
}

Work FaultyCommunicator::do_collective(const Collective& collective, const TensorView& in, const TensorView& out,
                                       Stream& stream, ActionId action) {
  const TensorView received = received_in(collective, out, rank());
  const Injection injection = plan_.next(has_bytes(received));
  return inject(injection, name_of(collective.kind), received, stream, action,
                [&] { return inner_->post(collective, in, out, stream, action); });
}

Work FaultyCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  const TensorView received = received_in(transfers);
  const Injection injection = plan_.next(has_bytes(received));
  if (injection.is_injected && options_.fault == Fault::reorder) transfers = reordered(transfers, injection.order);
  return inject(injection, "exchange", received, stream, action,
                [&] { return inner_->exchange(transfers, stream, action); });
}

template <class Post>
Work FaultyCommunicator::inject(const Injection& injection, const char* call, const TensorView& received,
                                Stream& stream, ActionId action, Post post) {
  if (injection.is_injected) inject_in_post(injection, call);
  Hold* const hold = hold_back(injection, stream);
  Posted posted;
  try {
    posted = post_inner(post);
  } catch (...) {
    if (hold) hold->release();
    throw;
  }
  const Event& done = posted.work.event;
  if (posted.is_refused) {
    if (hold) hold->release();
    const char* const why = done.fired() ? done.failure() : nullptr;
    return failed_post(why ? why : text("group {} has failed", group().id), action);
  }
  if (hold) hold->set_call(done);
  if (!injection.is_injected || options_.fault != Fault::corrupt) return posted.work;
  BitFlip& flip = idle_flip();
  const Event flipped = flip.start(done, received, injection.bit);
  stream.post(flip);
  return {flipped, action};
}

/// Counts the bytes that the wrapped communicator counts for this post.
template <class Post>
FaultyCommunicator::Posted FaultyCommunicator::post_inner(Post post) {
  const CommStats before = inner_->stats();
  const Work work = post();
  const CommStats& after = inner_->stats();
  count({after.bytes_out - before.bytes_out, after.bytes_in - before.bytes_in});
  return {work, after.ops == before.ops};
}

/// Faults inside the call. The others only need to be in the log.
void FaultyCommunicator::inject_in_post(const Injection& injection, const char* call) {
  if (options_.fault != Fault::delay && options_.fault != Fault::reorder) report(injection, call);
  if (options_.fault == Fault::die) ::raise(SIGKILL);
  while (options_.fault == Fault::hang_post) ::pause();
  if (options_.fault == Fault::fail)
    throw Error(text("injected fault: {} is post {}: the connection to a peer is lost", call, injection.post),
                text("group {}", group().id),
                "comm-faulty injects it: to run without it, set fault = \"none\" in the table that names comm-faulty");
}

void FaultyCommunicator::report(const Injection& injection, const char* call) {
  log_.info("comm-faulty: {} is post {} of group {}: injected fault {}", call, injection.post, group().id,
            name_of(options_.fault));
}

Hold* FaultyCommunicator::hold_back(const Injection& injection, Stream& stream) {
  Until until = Until::now;
  double time_s = options_.delay_s;
  switch (options_.fault) {
    case Fault::delay:
      until = Until::elapsed;
      time_s *= uniform(injection.duration);
      break;
    case Fault::reorder:
      if (!may_overtake_) return nullptr;
      until = Until::overtaken;
      break;
    case Fault::drop:
      until = Until::aborted;
      break;
    case Fault::hang_advance:
      until = Until::never;
      break;
    default:
      return nullptr;
  }
  if (!injection.is_injected) {
    if (options_.fault != Fault::reorder) return nullptr;
    until = Until::now; // it only says when its call begins
  }
  Hold& hold = idle_hold();
  hold.start(until, injection.post, seconds(time_s));
  stream.post(hold);
  return &hold;
}

/// Exchanges neighbours that are on different edges.
std::span<const Transfer> FaultyCommunicator::reordered(std::span<const Transfer> transfers, std::uint32_t order) {
  transfers_.assign(transfers.begin(), transfers.end());
  for (std::size_t i = transfers_.size(); i-- > 1; order = order >> 1 | order << 31)
    if ((order & 1) != 0 && !same_edge(transfers_[i - 1], transfers_[i])) std::swap(transfers_[i - 1], transfers_[i]);
  return transfers_;
}

Hold& FaultyCommunicator::idle_hold() {
  return idle(pool_->holds, [this] { return std::make_unique<Hold>(pool_->holding); });
}

BitFlip& FaultyCommunicator::idle_flip() {
  return idle(pool_->flips, [] { return std::make_unique<BitFlip>(); });
}

} // namespace triax::comm_faulty
