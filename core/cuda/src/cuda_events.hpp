// SPDX-License-Identifier: Apache-2.0
// The events of one stream: CUDA events that are reused for one generation after another.
//
// Threads: the rank's main thread; fired() and failure() any. fired() makes the event's GPU the current one of its
// thread, because CUDA creates a context on GPU 0 for a thread that has chosen no GPU. Ownership: the ring owns its
// slots and Events point to them: do not use an Event after its stream is destroyed. Errors: record() throws Error; an
// error that cudaEventQuery reports is the event's failure. Events of one stream fire in the order in which they were
// recorded, so the oldest slot is free first.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "triax/device.hpp"

namespace triax::cuda {

class DeviceEvent final : public EventState {
 public:
  explicit DeviceEvent(std::string_view stream);
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  ~DeviceEvent() override;

  /// The previous generation must have fired. `label`: label of the action begun last on the stream; may be null.
  Event record(cudaStream_t stream, const char* label);
  /// record() during stream capture, when CUDA cannot be queried about the event. It fires with release().
  Event capture(cudaStream_t stream);
  void release() noexcept;
  bool idle() noexcept { return fired(armed_); }
  cudaEvent_t native() const noexcept { return event_; }

  bool fired(std::uint64_t generation) noexcept override;
  const char* failure(std::uint64_t generation) const noexcept override;

 private:
  void failed(cudaError_t error, std::uint64_t generation) noexcept;
  void fires(std::uint64_t generation) noexcept;

  std::string_view stream_; // name of the stream
  const int gpu_;
  cudaEvent_t event_ = nullptr;
  std::atomic<const char*> label_{nullptr}; // names the action; read by any thread
  std::atomic<std::uint64_t> armed_{0}, fired_{0}, failed_{0};
  std::atomic<bool> captured_{false};
  std::mutex mutex_; // protects why_, which is set once
  std::string why_;
};

class EventRing {
 public:
  /// `stream`: name of the stream, for error messages; must live as long as the ring.
  explicit EventRing(std::string_view stream);
  Event record(cudaStream_t stream, const char* label);
  Event capture(cudaStream_t stream) { return next().capture(stream); }
  /// Marks all captured events as fired.
  void release() noexcept;

 private:
  DeviceEvent& next();

  std::string_view stream_;
  std::vector<std::unique_ptr<DeviceEvent>> slots_; // ring from next_ on, oldest first; grows when the oldest is in use
  std::size_t next_ = 0;
};

} // namespace triax::cuda
