// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include <system_error>
#include <utility>

#include "triax/error.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace triax::kernels_cpu {

namespace {

constexpr std::uint32_t kOpen = 1u << 15, kActive = kOpen - 1, kGeneration = 1u << 16;
// About 30 us, the usual gap between two operations of a step. Then a thread sleeps, because ranks share the cores.
constexpr int kSpins = 1000;

void relax() noexcept {
#if defined(__SSE2__)
  _mm_pause();
#endif
}

} // namespace

Pool::Pool(int threads, ProgressPoll poll) : poll_(poll) {
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error& error) {
    stop();
    throw Error(text("thread {} of {} could not be started: {}", workers_.size() + 2, threads, error.code().message()),
                "kernels-cpu", "allow this process more threads (ulimit -u), or give it fewer cores (taskset)");
  } catch (...) {
    stop();
    throw;
  }
}

Pool::~Pool() {
  stop();
}

void Pool::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  state_.fetch_add(kGeneration);
  wake();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::run_job(const Job& job) {
  if (workers_.empty() || job.items <= 1) return run_alone(job);
  open(job);
  drain(0);
  close();
  if (failed_.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Pool::run_alone(const Job& job) {
  for (std::int64_t item = 0; item < job.items; ++item) {
    job.call(job.object, item, 0);
    poll_();
  }
}

void Pool::open(const Job& job) {
  job_ = job;
  failed_.store(false, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  state_.store(((state_.load(std::memory_order_relaxed) | kOpen) + kGeneration));
  wake();
}

/// Waits for the workers that have joined the job; no other worker can join.
void Pool::close() {
  std::uint32_t state = state_.fetch_and(~kOpen) & ~kOpen;
  while (state & kActive) {
    await_change(state);
    state = state_.load(std::memory_order_acquire);
  }
}

void Pool::drain(int thread) noexcept {
  for (;;) {
    const std::int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    if (item >= job_.items) break;
    try {
      job_.call(job_.object, item, thread);
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
      next_.store(job_.items, std::memory_order_relaxed);
      break;
    }
    if (thread == 0) poll_();
  }
  if (thread == 0) poll_(); // also if the workers took every item
}

void Pool::work(int thread) noexcept {
  std::uint32_t done = 0; // generation of the last job that this thread joined
  for (;;) {
    std::uint32_t state = state_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!(state & kOpen) || state / kGeneration == done) {
      await_change(state);
      continue;
    }
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
    done = state / kGeneration;
    drain(thread);
    if (((state_.fetch_sub(1) - 1) & (kOpen | kActive)) == 0) wake();
  }
}

/// Spins briefly, then sleeps until wake(). May return early.
void Pool::await_change(std::uint32_t state) noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (state_.load(std::memory_order_relaxed) != state) return;
    relax();
  }
  sleepers_.fetch_add(1);
  state_.wait(state);
  sleepers_.fetch_sub(1);
}

/// A thread that counts itself in sleepers_ after this check sees the new state, and does not sleep.
void Pool::wake() noexcept {
  if (sleepers_.load() > 0) state_.notify_all();
}

} // namespace triax::kernels_cpu
