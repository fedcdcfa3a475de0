// SPDX-License-Identifier: Apache-2.0
#include "executor/offload_stream.hpp"

#include <algorithm>
#include <utility>

#include "base/caught_error.hpp"
#include "base/start_thread.hpp"
#include "triax/poll_pause.hpp"
#include "triax/rank_activity.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::executor {

OffloadStream::OffloadStream(StateStorage& storage, std::span<const OffloadBlock> blocks,
                             std::span<const std::span<std::byte>> buffers)
    : storage_(storage), blocks_(blocks), buffers_(buffers.begin(), buffers.end()) {
  TRIAX_REQUIRE(buffers_.size() <= kMaxBuffers, "{} buffers, at most {} are used", buffers_.size(), kMaxBuffers);
  thread_ = start_thread("the thread that reads and writes offloaded state",
                         [this] { return std::thread([this] { run_jobs(); }); });
}

OffloadStream::~OffloadStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void OffloadStream::post(std::size_t block, Direction direction) {
  {
    const std::lock_guard lock(mutex_);
    TRIAX_REQUIRE(waiting_ < jobs_.size(), "{} reads and writes wait already", waiting_);
    jobs_[(first_ + waiting_++) % jobs_.size()] = {block, direction};
  }
  changed_.notify_one();
  slots_[buffer_of(block)] = {block, ++posted_};
}

void OffloadStream::read_ahead(std::size_t block) {
  if (slots_[buffer_of(block)].block != block) post(block, Direction::read);
}

void OffloadStream::acquire(std::size_t block, Device& device, Deadline deadline) {
  wait_for(0, device, deadline); // a failure of the last write
  const std::size_t end = std::min(blocks_.size(), block + buffers_.size());
  for (std::size_t next = block; next < end; ++next) read_ahead(next);
  wait_for(slots_[buffer_of(block)].job, device, deadline);
}

void OffloadStream::release(std::size_t block, bool changed) {
  if (changed) post(block, Direction::write);
  const std::size_t next = block + buffers_.size();
  read_ahead(next < blocks_.size() ? next : buffer_of(block));
}

void OffloadStream::finish(Device& device, Deadline deadline) {
  wait_for(posted_, device, deadline);
}

void OffloadStream::discard() {
  slots_ = {};
}

/// Not a wait for other ranks: while no job ends, the rank makes no progress, and the watchdog reports it and not those
/// that wait for it.
void OffloadStream::wait_for(std::uint64_t job, Device& device, Deadline deadline) {
  const ActivityScope phase(ActivityScope::Kind::engine, "waiting for offloaded state");
  RankActivity* const activity = RankActivity::current();
  WaitDeadline until(deadline);
  std::uint64_t seen = done_.count;
  for (PollPause pause; !done_.fired(job); pause.after_poll(device.progress())) {
    device.abort_flag().check();
    if (const std::uint64_t count = done_.count; std::exchange(seen, count) != count && activity)
      activity->make_progress();
    if (until.passed())
      throw Error("timed out waiting for offloaded state", {},
                  "the disk of memory.offload_path may be slow or hang; train.stall_timeout_s sets the timeout");
  }
  if (!done_.failed.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  throw Error(*error_);
}

void OffloadStream::run_jobs() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || waiting_ > 0; });
    if (ends_) return; // what waits is lost with the storage
    const Job job = jobs_[first_];
    first_ = (first_ + 1) % jobs_.size();
    --waiting_;
    lock.unlock();
    try {
      run(job);
      done_.count.fetch_add(1, std::memory_order_release);
      lock.lock();
    } catch (...) {
      lock.lock();
      error_.emplace(caught_error());
      done_.failed.store(true, std::memory_order_release);
      return;
    }
  }
}

void OffloadStream::run(const Job& job) {
  const OffloadBlock& block = blocks_[job.block];
  const std::span<std::byte> bytes = buffers_[buffer_of(job.block)].first(block.bytes);
  if (job.direction == Direction::read) {
    storage_.read(block.offset, bytes);
  } else {
    storage_.write(block.offset, bytes);
  }
}

} // namespace triax::executor
