#include "stream.hpp"

#include <nvtx3/nvToolsExt.h>
#include <sched.h>

#include <utility>

#include "triax/cuda/check.hpp"
#include "triax/cuda/device.hpp"
#include "triax/error.hpp"

namespace triax::cuda {

namespace {

constexpr std::size_t kRoom = 1024; // items: a gradient reduction of 500 layers, two each
constexpr int kMostBehind = 128;    // a gate; each call may take several of the native stream's entries

cudaStream_t make_native() {
  cudaStream_t native = nullptr;
  TRIAX_CUDA(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking)); // the default stream is never waited for
  return native;
}

} // namespace

CudaStream::CudaStream(std::string name, Device& device, Gates& gates, std::vector<CudaStream*>& streams)
    : name_(std::move(name)),
      device_(device),
      gates_(gates),
      streams_(streams),
      native_(make_native()),
      events_(name_),
      ring_(kRoom) {
  if (gates_.usable()) gate_ = gates_.take();
  streams_.push_back(this);
}

CudaStream::~CudaStream() {
  std::erase(streams_, this);
  for (std::size_t i = 0; i < count_; ++i) {
    if (HostTask* task = ring_[(head_ + i) % ring_.size()].task) task->dropped();
  }
  if (gate_) gate_.open(last_);
  cudaStreamDestroy(native_); // what is on it still runs
}

void CudaStream::wait(const Event& event) {
  if (event.fired() && !event.failure()) return;
  if (const auto* of_device = dynamic_cast<const DeviceEvent*>(event.state()); of_device && !event.failure()) {
    TRIAX_CUDA(cudaStreamWaitEvent(native_, of_device->native(), 0));
    worked_ = true;
    return;
  }
  push({Item::Kind::wait, event, nullptr, 0});
}

void CudaStream::start_recording() {
  pass_host_work();
  recording_ = true;
}

void CudaStream::stop_recording() noexcept {
  recording_ = false;
  events_.release();
}

Event CudaStream::record() {
  if (recording_) return events_.capture(native_);
  if (count_ == 0 || gate_) {
    hold_back();
    return events_.record(native_, label_);
  }
  push({Item::Kind::mark, work_before(), nullptr, 0});
  return marks_.next();
}

void CudaStream::post(HostTask& task) {
  push({Item::Kind::task, work_before(), &task, 0});
}

/// Fires with the device work put on the stream since the last item: of what is before that, the queue's order speaks.
Event CudaStream::work_before() {
  if (!worked_) return {};
  worked_ = false;
  return events_.record(native_, label_);
}

void CudaStream::hold_back() {
  if (count_ == 0 || held_ == last_) return;
  gates_.close(gate_, last_, native_);
  held_ = last_;
}

void CudaStream::push(Item item) {
  if (recording_)
    throw Error("work that the host moves on cannot be recorded", "stream " + name_,
                "leave train.cuda_graph out, or use communicators whose calls run on the GPU's streams");
  item.number = ++last_;
  if (count_ == ring_.size()) {
    std::vector<Item> larger(2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(head_ + i) % ring_.size()];
    ring_ = std::move(larger);
    head_ = 0;
  }
  ring_[(head_ + count_) % ring_.size()] = item;
  ++count_;
}

bool CudaStream::finished(const Item& item) noexcept {
  if (!item.event.fired()) return false;
  if (const char* why = item.event.failure()) {
    failed_ = true;
    device_.interrupt().raise(why);
    return false;
  }
  if (item.kind == Item::Kind::task && !item.task->advance()) return false;
  if (item.kind == Item::Kind::mark) marks_.fire();
  if (gate_) gate_.open(item.number);
  return true;
}

bool CudaStream::advance() noexcept {
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

template <class Done>
void CudaStream::pump_until(Done done) {
  device_.interrupt().check();
  if (done()) return;
  const Deadline deadline = deadline_in(device_.patience());
  while (!done()) {
    if (!device_.progress()) {
      if (Clock::now() >= deadline)
        throw Error("not finished at its deadline", "stream " + name_,
                    "a peer may be slow, lost, or waiting for something else; train.stall_timeout_s sets the deadline");
      sched_yield();
    }
    device_.interrupt().check();
  }
}

void CudaStream::ready() {
  const Event all = record();
  pump_until([&] { return all.fired(); });
  if (const char* why = all.failure()) throw Error(why, "stream " + name_);
}

cudaStream_t CudaStream::admitted() {
  if (count_ == 0) behind_ = 0;
  if (count_ > 0 && (!gate_ || ++behind_ > kMostBehind)) {
    pass_host_work();
  } else {
    hold_back();
  }
  worked_ = true;
  return native_;
}

void CudaStream::pass_host_work() {
  pump_until([this] { return count_ == 0; });
}

void CudaStream::begin(ActionId action, const char* label) noexcept {
  current_.store(action, std::memory_order_relaxed);
  label_ = label;
  nvtxRangePushA(label);
}

void CudaStream::end(ActionId) noexcept {
  current_.store(kNoAction, std::memory_order_relaxed);
  nvtxRangePop();
}

cudaStream_t launch_stream(Stream& stream) {
  auto* own = dynamic_cast<CudaStream*>(&stream);
  TRIAX_REQUIRE(own, "stream \"{}\" is not one of a CUDA device", stream.name());
  return own->admitted();
}

} // namespace triax::cuda
