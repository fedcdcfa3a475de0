#include "support/fake_cuda_stream.hpp"

#include <sched.h>

#include <utility>

#include "triax/error.hpp"

namespace triax::test::fake_cuda {

namespace {

constexpr std::size_t kRoom = 1024; // items: a gradient reduction of 500 layers, two each

} // namespace

FakeStream::FakeStream(std::string name, Device& device, Lane& lane, std::vector<FakeStream*>& streams)
    : name_(std::move(name)), device_(device), lane_(lane), streams_(streams), ring_(kRoom) {
  streams_.push_back(this);
}

FakeStream::~FakeStream() {
  std::erase(streams_, this);
  for (std::size_t i = 0; i < count_; ++i) {
    if (HostTask* task = ring_[(head_ + i) % ring_.size()].task) task->dropped();
  }
  lane_.close();
}

void FakeStream::record_on(Tape* tape) {
  pass_host_work();
  tape_ = tape;
}

void FakeStream::wait(const Event& event) {
  if (tape_) {
    if (tape_->wait(lane_, event) || event.fired()) return;
    throw Error("what is recorded cannot wait for what is not", "stream " + name_);
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
  push({Queued::Kind::wait, event, nullptr, 0});
}

Event FakeStream::record() {
  if (tape_) return tape_->record(lane_);
  hold_back();
  return lane_.record();
}

void FakeStream::post(HostTask& task) {
  push({Queued::Kind::task, work_before(), &task, 0});
}

/// Fires with the device work put on the stream since the last item: of what is before that, the queue's order speaks.
Event FakeStream::work_before() {
  if (!worked_) return {};
  worked_ = false;
  return lane_.record();
}

void FakeStream::hold_back() {
  if (count_ == 0 || held_ == last_) return;
  Item item;
  item.kind = Item::Kind::gate;
  item.number = held_ = last_;
  lane_.put(std::move(item));
}

void FakeStream::push(Queued item) {
  if (tape_) throw Error("work that the host moves on cannot be recorded", "stream " + name_);
  item.number = ++last_;
  if (count_ == ring_.size()) {
    std::vector<Queued> larger(2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(head_ + i) % ring_.size()];
    ring_ = std::move(larger);
    head_ = 0;
  }
  ring_[(head_ + count_) % ring_.size()] = item;
  ++count_;
}

bool FakeStream::finished(const Queued& item) noexcept {
  if (!item.event.fired()) return false;
  if (const char* why = item.event.failure()) {
    failed_ = true;
    device_.interrupt().raise(why);
    return false;
  }
  if (item.task && !item.task->advance()) return false;
  lane_.open(item.number);
  return true;
}

bool FakeStream::advance() noexcept {
  if (advancing_ || failed_) return false; // a task that pumps must not meet itself
  advancing_ = true;
  bool moved = false;
  while (count_ > 0) {
    const Queued item = ring_[head_]; // by value: a task may post, and the ring may grow
    if (!finished(item)) break;
    head_ = (head_ + 1) % ring_.size();
    --count_;
    moved = true;
  }
  advancing_ = false;
  return moved;
}

template <class Done>
void FakeStream::pump_until(Done done) {
  device_.interrupt().check();
  if (done()) return;
  const Deadline deadline = deadline_in(device_.patience());
  while (!done()) {
    if (!device_.progress()) {
      if (Clock::now() >= deadline) throw Error("not finished at its deadline", "stream " + name_);
      sched_yield();
    }
    device_.interrupt().check();
  }
}

void FakeStream::ready() {
  const Event all = record();
  pump_until([&] { return all.fired(); });
  if (const char* why = all.failure()) throw Error(why, "stream " + name_);
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
  hold_back();
  worked_ = true;
}

void FakeStream::pass_host_work() {
  pump_until([this] { return count_ == 0; });
}

} // namespace triax::test::fake_cuda
