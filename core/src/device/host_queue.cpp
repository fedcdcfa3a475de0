// SPDX-License-Identifier: Apache-2.0
#include "device/host_queue.hpp"

#include <algorithm>
#include <utility>

#include "device/timeout_error.hpp"
#include "device/wait_failure.hpp"
#include "triax/error.hpp"
#include "triax/poll_pause.hpp"
#include "triax/rank_activity.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::device {

namespace {

constexpr std::size_t kInitialItems = 1024; // items: the gradient reductions of 500 layers, two items each

bool advanced(HostTask& task) noexcept {
  const ActivityScope call(ActivityScope::Kind::plugin_call, "advance", typeid(task));
  return task.advance();
}

} // namespace

HostQueue::HostQueue(std::string_view stream, Device& device)
    : location_("stream " + std::string(stream)), device_(device) {}

Event HostQueue::mark(const Event& before) {
  push({Item::Kind::mark, before});
  return marks_.next();
}

void HostQueue::push(Item item) {
  item.number = ++last_;
  if (count_ == ring_.size()) {
    std::vector<Item> larger(std::max(kInitialItems, 2 * ring_.size()));
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(head_ + i) % ring_.size()];
    ring_ = std::move(larger);
    head_ = 0;
  }
  ring_[(head_ + count_) % ring_.size()] = item;
  ++count_;
}

bool HostQueue::finished(const Item& item) noexcept {
  if (!item.event.fired()) return false;
  if (const char* why = item.event.failure()) {
    failed_ = true;
    device_.abort_flag().raise(why);
    return false;
  }
  if (item.task && !advanced(*item.task)) return false;
  if (item.kind == Item::Kind::mark) marks_.fire();
  return true;
}

void HostQueue::drop() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (HostTask* task = ring_[(head_ + i) % ring_.size()].task) task->dropped();
  }
  count_ = 0;
}

template <class Done>
void HostQueue::progress_while(Done done) {
  device_.abort_flag().check();
  if (done()) return;
  const PolledWait wait;
  PollPause pause;
  WaitDeadline until(deadline_in(device_.default_timeout()));
  while (!done()) {
    wait.poll();
    if (device_.progress()) {
      wait.advance();
      pause.advance();
    } else {
      if (until.passed()) throw_timeout(location_);
      pause.idle();
    }
    device_.abort_flag().check();
  }
}

void HostQueue::progress_until(const Event& event) {
  wait_for_others([&] {
    progress_while([&] { return event.fired(); });
    if (const char* why = event.failure()) throw Error(why, location_);
  });
}

void HostQueue::finish_all() {
  wait_for_others([this] { progress_while([this] { return empty(); }); });
}

} // namespace triax::device
