// The events of one stream: CUDA events that are used again for one generation after another.
//
// Threads: the rank's main thread; fired() and failure() any. Ownership: the ring owns its slots, and Events point into
// them: they are not asked after their stream has gone. Blocking: never; fired() asks CUDA. Errors: record() throws
// Error; an error that CUDA tells of when asked is the event's failure. Events of one stream fire in the order in which
// they were recorded, so the oldest slot is the first to be free.
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

  /// The generation before must have fired. `label`: of the action begun last on the stream; may be null.
  Event record(cudaStream_t stream, const char* label);
  /// The same while the stream is captured: CUDA cannot be asked about it. It fires with release().
  Event capture(cudaStream_t stream);
  void release() noexcept;
  bool idle() noexcept { return fired(armed_); }
  cudaEvent_t native() const noexcept { return event_; }

  bool fired(std::uint64_t generation) noexcept override;
  const char* failure(std::uint64_t generation) const noexcept override;

 private:
  void failed(cudaError_t error, std::uint64_t generation) noexcept;
  void fires(std::uint64_t generation) noexcept;

  std::string_view stream_; // its name
  cudaEvent_t event_ = nullptr;
  const char* label_ = nullptr;
  std::atomic<std::uint64_t> armed_{0}, fired_{0}, failed_{0};
  std::atomic<bool> captured_{false};
  std::mutex mutex_; // of what becomes why_, once
  std::string why_;
};

class EventRing {
 public:
  /// `stream`: its name, for failures; must live as long as the ring.
  explicit EventRing(std::string_view stream);
  Event record(cudaStream_t stream, const char* label);
  Event capture(cudaStream_t stream) { return next().capture(stream); }
  /// All that were captured have no more to say.
  void release() noexcept;

 private:
  DeviceEvent& next();

  std::string_view stream_;
  std::vector<std::unique_ptr<DeviceEvent>> slots_; // from next_ on, oldest first; grows when the oldest is in use
  std::size_t next_ = 0;
};

} // namespace triax::cuda
