// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda_stream.hpp"

#include <utility>

#include "triax/error.hpp"

namespace triax::test::fake_cuda {

FakeStream::FakeStream(std::string name, Device& device, Lane& lane, const bool& lazy_load_guard)
    : Stream(std::move(name), device), lane_(lane), queue_(this->name(), device), first_use_(lazy_load_guard) {}

FakeStream::~FakeStream() {
  queue_.drop();
  lane_.close();
}

void FakeStream::record_on(Tape* tape) {
  wait_for_host_work();
  tape_ = tape;
}

void FakeStream::wait(const Event& event) {
  if (tape_) {
    if (tape_->wait(lane_, event) || event.fired()) return;
    throw Error("what is recorded cannot wait for what is not", "stream " + name());
  }
  if (event.fired() && !event.failure()) return;
  if (auto* of = dynamic_cast<Lane*>(event.state()); of && !event.failure()) {
    Item item;
    item.kind = Item::Kind::event;
    item.of = of;
    item.number = event.generation();
    lane_.put(std::move(item));
    worked_ = true;
    return;
  }
  host_work().wait(event);
}

Event FakeStream::record() {
  if (tape_) return tape_->record(lane_);
  if (first_use_ && !queue_.empty()) return host_work().mark(work_before());
  hold_back();
  return lane_.record();
}

void FakeStream::post(HostTask& task) {
  host_work().post(task, work_before());
}

/// Event of the device work since the last queue item; the queue orders anything earlier.
Event FakeStream::work_before() {
  if (!worked_) return {};
  worked_ = false;
  return lane_.record();
}

void FakeStream::hold_back() {
  if (queue_.empty() || held_ == queue_.last()) return;
  Item item;
  item.kind = Item::Kind::flag;
  item.number = held_ = queue_.last();
  lane_.put(std::move(item));
}

device::HostQueue& FakeStream::host_work() {
  if (tape_) throw Error("work that the host advances cannot be captured", "stream " + name());
  return queue_;
}

bool FakeStream::advance() noexcept {
  return queue_.advance([this](std::uint32_t number) { lane_.set_flag(number); });
}

void FakeStream::ready() {
  queue_.progress_until(record());
}

void FakeStream::enqueue(std::function<void()> item) {
  Item put;
  put.call = std::move(item);
  tape_ ? tape_->put(lane_, std::move(put)) : lane_.put(std::move(put));
}

void FakeStream::launch(Item item) {
  if (tape_) return tape_->put(lane_, std::move(item));
  admit();
  lane_.put(std::move(item));
}

void FakeStream::admit() {
  first_use_ ? wait_for_host_work() : hold_back();
  worked_ = true;
}

void FakeStream::wait_for_host_work() {
  queue_.finish_all();
}

} // namespace triax::test::fake_cuda
