// SPDX-License-Identifier: Apache-2.0
#include "cuda_events.hpp"

#include "triax/cuda/cuda_check.hpp"
#include "triax/error.hpp"

namespace triax::cuda {

namespace {

constexpr std::size_t kSlots = 32; // initially

int current_gpu() {
  int gpu = 0;
  TRIAX_CUDA(cudaGetDevice(&gpu));
  return gpu;
}

/// Creates no context if the thread has chosen no GPU.
void make_current(int gpu) noexcept {
  int current = 0;
  if (cudaGetDevice(&current) != cudaSuccess || current != gpu) cudaSetDevice(gpu);
}

} // namespace

DeviceEvent::DeviceEvent(std::string_view stream) : stream_(stream), gpu_(current_gpu()) {
  TRIAX_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

DeviceEvent::~DeviceEvent() {
  cudaEventDestroy(event_); // also valid if it is pending; an error does not matter here
}

Event DeviceEvent::record(cudaStream_t stream, const char* label) {
  TRIAX_CUDA(cudaEventRecord(event_, stream));
  label_.store(label, std::memory_order_relaxed);
  return {this, ++armed_};
}

Event DeviceEvent::capture(cudaStream_t stream) {
  captured_.store(true, std::memory_order_release); // set first: no other thread may query CUDA about it
  TRIAX_CUDA(cudaEventRecord(event_, stream));
  return {this, ++armed_};
}

void DeviceEvent::release() noexcept {
  if (!captured_.load(std::memory_order_acquire)) return;
  fires(armed_);
  captured_.store(false, std::memory_order_release);
}

/// Marks only the queried generation as fired: the event may have been recorded again in the meantime.
void DeviceEvent::fires(std::uint64_t generation) noexcept {
  std::uint64_t before = fired_.load(std::memory_order_relaxed);
  while (before < generation && !fired_.compare_exchange_weak(before, generation, std::memory_order_release)) {
  }
}

bool DeviceEvent::fired(std::uint64_t generation) noexcept {
  if (fired_.load(std::memory_order_acquire) >= generation) return true;
  if (captured_.load(std::memory_order_acquire)) return false;
  make_current(gpu_);
  const cudaError_t state = cudaEventQuery(event_);
  if (state == cudaErrorNotReady) {
    cudaGetLastError(); // clears cudaErrorNotReady, which the next launch check would report
    return false;
  }
  if (state != cudaSuccess) failed(state, generation);
  fires(generation);
  return true;
}

/// Keeps the first error text: after a failure this process can no longer use the GPU.
void DeviceEvent::failed(cudaError_t error, std::uint64_t generation) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed) != 0) return;
  const char* label = label_.load(std::memory_order_relaxed);
  try {
    why_ = text("the GPU failed at or before {} on stream \"{}\": {}; {}", label ? label : "the first action", stream_,
                text_of(error), hint_for(error));
  } catch (...) { // out of memory: a failure without text is better than no failure
    why_.clear();
  }
  failed_.store(generation, std::memory_order_release);
}

const char* DeviceEvent::failure(std::uint64_t generation) const noexcept {
  const std::uint64_t failed = failed_.load(std::memory_order_acquire);
  return failed != 0 && generation >= failed ? why_.c_str() : nullptr;
}

EventRing::EventRing(std::string_view stream) : stream_(stream) {
  for (std::size_t i = 0; i < kSlots; ++i) slots_.push_back(std::make_unique<DeviceEvent>(stream_));
}

Event EventRing::record(cudaStream_t stream, const char* label) {
  return next().record(stream, label);
}

void EventRing::release() noexcept {
  for (const auto& slot : slots_) slot->release();
}

DeviceEvent& EventRing::next() {
  if (!slots_[next_]->idle()) // insert the new slot before the oldest, which stays the next one
    slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(next_), std::make_unique<DeviceEvent>(stream_));
  DeviceEvent& slot = *slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  return slot;
}

} // namespace triax::cuda
