// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu_stand_in/machine.hpp"
#include "settings.hpp"

namespace triax::gpu_stand_in {

namespace {

cudaError_t code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kMisalignedAddress:
      return cudaErrorMisalignedAddress;
    case ErrorKind::kTrap:
    case ErrorKind::kBarrier:
    case ErrorKind::kDivergence:
    case ErrorKind::kHazard:
      return cudaErrorLaunchFailure;
    case ErrorKind::kLaunch:
      return cudaErrorLaunchOutOfResources;
    default:
      return cudaErrorIllegalAddress;
  }
}

} // namespace

void Backoff::pause() {
  ++count_;
  if (count_ < 8) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(count_, 500u)));
  }
}

bool run_guarded(GpuDevice& device, const std::string& name, const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const MachineError& e) {
    device.fail(code_of(e.kind), e.what());
  } catch (const StreamError& e) {
    device.fail(e.code, e.what());
  } catch (const PtxError& e) {
    device.fail(cudaErrorInvalidPtx, e.what());
  } catch (const std::exception& e) {
    device.fail(cudaErrorUnknown, name + ": " + e.what());
  }
  return false;
}

void run_to_end(GpuDevice& device, const StreamWork& work) {
  if (device.sticky() != cudaSuccess) return;
  run_guarded(device, work.name, [&] {
    const Poll poll = work.start();
    if (!poll) return;
    for (Backoff backoff; !poll() && device.sticky() == cudaSuccess;) backoff.pause();
  });
}

StreamWork wait_for(MarkerPtr marker, std::string name) {
  return {std::move(name), [marker = std::move(marker)]() -> Poll {
            if (marker->is_done()) return nullptr;
            return [marker] { return marker->is_done(); };
          }};
}

Stream::Stream(GpuDevice& device, unsigned number, bool blocking)
    : device_(device),
      name_(number == 0 ? "legacy default stream" : "stream " + std::to_string(number)),
      blocking_(blocking),
      random_(seed_for(name_ + " of GPU " + std::to_string(device.number()))) {}

MarkerPtr Stream::push(StreamWork work) {
  auto done = std::make_shared<Marker>();
  {
    std::lock_guard lock(mutex_);
    if (!started_) std::thread([self = shared_from_this()] { self->run(); }).detach();
    started_ = true;
    tasks_.push_back({std::move(work), done});
    last_ = done;
  }
  wake_.notify_one();
  return done;
}

void Stream::run() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !tasks_.empty() || closed_; });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run_task(task);
  }
}

void Stream::run_task(const Task& task) {
  delay();
  run_to_end(device_, task.work);
  task.done->set_done();
}

// With a seed, some work starts late, so that each order of streams that no event forbids comes about.
void Stream::delay() {
  if (random_ == 0) return;
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  const auto chosen = static_cast<unsigned>(random_ >> 33);
  if (chosen % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(chosen / 4 % 2000));
}

MarkerPtr Stream::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

bool Stream::is_idle() const {
  const MarkerPtr marker = last();
  return !marker || marker->is_done();
}

void Stream::wait() const {
  if (const MarkerPtr marker = last()) marker->wait();
}

void Stream::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_one();
}

} // namespace triax::gpu_stand_in
