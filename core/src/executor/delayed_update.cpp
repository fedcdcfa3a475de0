// SPDX-License-Identifier: Apache-2.0
#include "executor/delayed_update.hpp"

#include <algorithm>
#include <utility>

#include "base/caught_error.hpp"
#include "base/start_thread.hpp"
#include "triax/poll_pause.hpp"
#include "triax/rank_activity.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::executor {

namespace {

/// One block is rounded on the device, and one received on the host, at a time.
struct BlockBuffers {
  ReusedBlock received, rounded;
};

std::vector<StagedPiece> stage_all_in(BlockBuffers& buffers, Arena& host, const OffloadLayout& layout,
                                      const StagedTypes& types, std::span<const ParameterShard> shards) {
  const auto begin_block = [&](std::size_t) {
    buffers.received.restart();
    buffers.rounded.restart();
  };
  return staged_pieces(layout, shards, begin_block, [&](StagedPiece& piece, std::int64_t count) {
    piece.sent = host.tensor(types.sent, {count});
    piece.updated = host.tensor(types.working, {count});
    piece.received = types.rounds() ? buffers.received.tensor(types.master, {count}) : piece.sent;
    piece.rounded = types.rounds() ? buffers.rounded.tensor(types.sent, {count}) : piece.gradient;
  });
}

} // namespace

std::vector<StagedPiece> stage_all_pieces(const OffloadLayout& layout, const StagedTypes& types,
                                          std::span<const ParameterShard> shards, RankMemory& memory) {
  Arena counts("counted");
  BlockBuffers counted;
  stage_all_in(counted, counts, layout, types, shards);
  BlockBuffers out{placed_block(memory.hosted_staging, counted.received),
                   placed_block(memory.offload, counted.rounded)};
  return stage_all_in(out, memory.hosted_staging, layout, types, shards);
}

DelayedUpdate::DelayedUpdate(Device& device, Stream& compute, const HostKernels& host,
                             std::span<const OffloadBlock> blocks, std::vector<StagedPiece> pieces)
    : device_(device),
      compute_(compute),
      copies_(device, compute, host, blocks, std::move(pieces)),
      arrivals_(blocks.size()) {
  thread_ =
      start_thread("the thread that updates weights on the host", [this] { return std::thread([this] { run(); }); });
  device_.add_source(*this);
}

DelayedUpdate::~DelayedUpdate() {
  device_.remove_source(*this);
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DelayedUpdate::set_update(Update update, double timeout_s) {
  update_ = std::move(update);
  timeout_s_ = timeout_s;
}

void DelayedUpdate::begin(const StepScalars& scalars) {
  TRIAX_REQUIRE(!pending_, "an update begins while another is pending");
  wait_for(requested_);
  published_ = 0;
  {
    const std::lock_guard lock(mutex_);
    scalars_ = scalars;
    arrived_ = 0;
    updated_.store(0, std::memory_order_relaxed);
  }
  copies_.follow_compute();
  for (requested_ = 0; requested_ < arrivals_.size(); ++requested_) arrivals_[requested_] = copies_.request(requested_);
  pending_ = true;
}

void DelayedUpdate::keep_gradients() {
  if (requested_ > 0) compute_.wait(arrivals_[requested_ - 1]);
}

void DelayedUpdate::apply() {
  if (!pending_) return;
  copies_.follow_compute();
  for (std::size_t block = 0; block < arrivals_.size(); ++block) {
    wait_for(std::min(block + 1, requested_)); // none was requested after restore()
    copies_.send_weights(block);
  }
  copies_.precede_compute();
  pending_ = false;
}

void DelayedUpdate::finish() {
  wait_for(requested_);
  copies_.follow_compute();
  for (std::size_t piece = 0; piece < copies_.pieces().size(); ++piece)
    device_.download(read_weights(piece), copies_.pieces()[piece].working, copies_.stream());
  device_.wait(copies_.stream().record(), deadline_in(timeout_s_));
}

void DelayedUpdate::refresh(std::size_t block, std::span<const ParameterShard> shards, Deadline deadline) {
  wait_for(requested_);
  copies_.refresh(block, shards, deadline);
  pending_ = false;
}

TensorView DelayedUpdate::read_weights(std::size_t piece) const {
  const StagedPiece& of = copies_.pieces()[piece];
  TRIAX_REQUIRE(of.working.bytes() <= of.sent.bytes(), "{} bytes of weights in memory for {} of gradients",
                of.working.bytes(), of.sent.bytes());
  return {of.sent.data(), of.working.dtype(), of.working.shape()};
}

void DelayedUpdate::restore(Deadline deadline) {
  copies_.follow_compute();
  for (std::size_t piece = 0; piece < copies_.pieces().size(); ++piece)
    device_.upload(copies_.pieces()[piece].working, read_weights(piece), copies_.stream());
  copies_.precede_compute();
  device_.wait(copies_.stream().record(), deadline);
  pending_ = true;
}

/// A failed copy is not published: the wait for it throws.
void DelayedUpdate::progress() noexcept {
  std::size_t arrived = published_;
  while (arrived < requested_ && arrivals_[arrived].fired() && !arrivals_[arrived].failure()) ++arrived;
  if (std::exchange(published_, arrived) == arrived) return;
  {
    const std::lock_guard lock(mutex_);
    arrived_ = arrived;
  }
  changed_.notify_one();
}

/// Not a wait for other ranks: while no block is updated, the rank makes no progress, and the watchdog reports it.
void DelayedUpdate::wait_for(std::size_t blocks) {
  if (blocks == 0) return;
  const Deadline deadline = deadline_in(timeout_s_);
  const ActivityScope phase(ActivityScope::Kind::engine, "waiting for the weights that the host updates");
  device_.wait(arrivals_[blocks - 1], deadline);
  RankActivity* const activity = RankActivity::current();
  WaitDeadline until(deadline);
  std::size_t seen = updated_;
  for (PollPause pause; !is_updated(blocks); pause.after_poll(device_.progress())) {
    device_.abort_flag().check();
    if (const std::size_t count = updated_; std::exchange(seen, count) != count && activity) activity->make_progress();
    if (until.passed())
      throw Error("timed out waiting for the weights that the host updates", {},
                  "other processes may use its cores; train.stall_timeout_s sets the timeout");
  }
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  throw Error(*error_);
}

void DelayedUpdate::run() {
  RankActivity activity; // of this thread: it names the plugin whose call fails
  const RankActivity::Binding binding(activity);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || updated_.load(std::memory_order_relaxed) < arrived_; });
    if (ends_) return;
    const std::size_t block = updated_.load(std::memory_order_relaxed);
    lock.unlock();
    try {
      copies_.receive(block);
      update_(block, scalars_);
      updated_.store(block + 1, std::memory_order_release);
      lock.lock();
    } catch (...) {
      const Error error = activity.with_failed_call(caught_error());
      lock.lock();
      error_.emplace(error.message(),
                     text("the update on the host{}{}", error.where().empty() ? "" : ", ", error.where()),
                     error.hint());
      failed_.store(true, std::memory_order_release);
      return;
    }
  }
}

} // namespace triax::executor
