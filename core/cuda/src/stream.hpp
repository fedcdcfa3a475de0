// A stream of the CUDA device: a native stream, and a queue of what on it is the host's business.
//
// Threads: the rank's main thread, but for current(). Ownership: the queue refers to tasks and events of others.
// Blocking: ready(), and admitted() where streams cannot wait for the host. Errors: Error.
//
// Device work and events of this device go to the native stream and nowhere else. An item of the queue (a wait for a
// host event, a host task) starts when the items before it are over and, if it is a task, when the device work put on
// the stream before it is. Work put on the stream later waits for it at a gate (gates.hpp), which is closed once for
// all items before the work. Not much may stand there: a native stream takes about a thousand entries, and the call for
// one more would not come back, with nobody left to open the gate. So admitted() pumps when there are many, and always
// where there are no gates, or none may be closed (triax/first_use.hpp). When the stream goes, its gate opens: what is
// on the GPU must come to an end.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <string>
#include <vector>

#include "device/host_queue.hpp" // of the core
#include "events.hpp"
#include "gates.hpp"
#include "triax/device.hpp"

namespace triax::cuda {

class CudaStream final : public Stream {
 public:
  /// Enters itself into the device's list of streams, and leaves it when it goes.
  CudaStream(std::string name, Device& device, Gates& gates, std::vector<CudaStream*>& streams);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  std::string_view name() const noexcept override { return name_; }
  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void begin(ActionId action, const char* label) noexcept override;
  void end(ActionId action) noexcept override;
  ActionId current() const noexcept override { return current_.load(std::memory_order_relaxed); }
  void* native() noexcept override { return native_; }

  /// The native stream, once work may be put on it.
  cudaStream_t admitted();
  /// From now on its events are those of a capture; until stop_recording().
  void start_recording();
  void stop_recording() noexcept;
  /// Nothing on it waits for the host: a call that blocks on the native stream comes back.
  void pass_host_work();
  Device& device() noexcept { return device_; }

 private:
  /// Whether work may be put on the stream before the host's work that it comes after.
  bool gated() const noexcept { return gate_ && !gates_.resting(); }
  device::HostQueue& host_work();
  Event work_before();
  void hold_back();

  std::string name_;
  Device& device_;
  Gates& gates_;
  std::vector<CudaStream*>& streams_;
  cudaStream_t native_ = nullptr;
  EventRing events_;
  device::HostQueue queue_;
  Gate gate_;
  std::uint32_t held_ = 0; // the number of the last item that work was held back for
  int behind_ = 0;         // calls whose work stands at the gate
  bool worked_ = false;    // device work was put on the stream since the last item
  bool recording_ = false;
  const char* label_ = nullptr; // of the action begun last
  std::atomic<ActionId> current_{kNoAction};
};

} // namespace triax::cuda
