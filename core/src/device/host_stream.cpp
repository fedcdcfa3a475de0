#include "device/host_stream.hpp"

#include <sched.h>

#include <utility>

#include "device/late.hpp"
#include "triax/error.hpp"

namespace triax::device {

namespace {

constexpr std::size_t kRoom = 1024; // items: a gradient reduction of 500 layers, two each

} // namespace

HostStream::HostStream(std::string name, Device& device, std::vector<HostStream*>& streams)
    : name_(std::move(name)), device_(device), streams_(streams), ring_(kRoom) {
  streams_.push_back(this);
}

HostStream::~HostStream() {
  std::erase(streams_, this);
  for (std::size_t i = 0; i < count_; ++i) {
    if (HostTask* task = ring_[(head_ + i) % ring_.size()].task) task->dropped();
  }
}

void HostStream::wait(const Event& event) {
  if (event.fired() && !event.failure()) return;
  push({Item::Kind::wait, event, nullptr});
}

Event HostStream::record() {
  if (count_ == 0) return {};
  push({Item::Kind::mark, {}, nullptr});
  return marks_.next();
}

void HostStream::post(HostTask& task) {
  push({Item::Kind::task, {}, &task});
}

void HostStream::push(const Item& item) {
  if (count_ == ring_.size()) {
    std::vector<Item> larger(2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(head_ + i) % ring_.size()];
    ring_ = std::move(larger);
    head_ = 0;
  }
  ring_[(head_ + count_) % ring_.size()] = item;
  ++count_;
}

bool HostStream::finished(const Item& item) noexcept {
  switch (item.kind) {
    case Item::Kind::wait:
      if (!item.event.fired()) return false;
      if (const char* why = item.event.failure()) {
        failed_ = true;
        device_.interrupt().raise(why);
        return false;
      }
      return true;
    case Item::Kind::task:
      return item.task->advance();
    case Item::Kind::mark:
      marks_.fire();
      return true;
  }
  return true;
}

bool HostStream::advance() noexcept {
  if (advancing_ || failed_) return false; // a task that pumps must not meet itself
  advancing_ = true;
  bool moved = false;
  while (count_ > 0) {
    const Item item = ring_[head_]; // by value: a task may post, and the ring may grow
    if (!finished(item)) break;
    head_ = (head_ + 1) % ring_.size();
    --count_;
    moved = true;
  }
  advancing_ = false;
  return moved;
}

void HostStream::ready() {
  device_.interrupt().check();
  if (count_ == 0) return;
  const Deadline deadline = deadline_in(device_.patience());
  while (count_ > 0) {
    if (!device_.progress()) {
      if (Clock::now() >= deadline) throw_late("stream " + name_);
      sched_yield();
    }
    device_.interrupt().check();
  }
}

void HostStream::begin(ActionId action, const char*) noexcept {
  current_.store(action, std::memory_order_relaxed);
}

void HostStream::end(ActionId) noexcept {
  current_.store(kNoAction, std::memory_order_relaxed);
}

} // namespace triax::device
