// SPDX-License-Identifier: Apache-2.0
// A stream of the CUDA device: a native stream, and a host-side queue.
//
// Threads: the rank's main thread; current() any. Blocking: ready() and wait_for_work(); native_for_enqueue() if it
// waits for host work.
//
// Device work and events of this device are enqueued directly on the native stream. An item of the host-side queue (a
// wait for a host event, a host task) starts when all earlier items are done and, if it is a task, when the device work
// that was enqueued before it is done. Device work that is enqueued after an item must wait for the item. It waits for
// a host flag (host_flags.hpp), a number that the GPU waits for; one wait serves all items that precede the work.
// The amount of work behind a wait is limited: a native stream holds about a thousand entries: work, events and waits.
// A call for one more entry would block this thread, which is the only one that sets the flag. So native_for_enqueue()
// runs the progress loop if there are many entries behind the wait, and always if flags are not supported or must not
// be waited for (triax/lazy_load_guard.hpp; more streams than hardware queues). The destructor sets the flag, so that
// work on the GPU can finish.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "cuda_events.hpp"
#include "device/host_queue.hpp" // of the core
#include "host_flags.hpp"
#include "triax/device.hpp"

namespace triax::cuda {

class CudaStream final : public Stream {
 public:
  CudaStream(std::string name, Device& device, HostFlags& flags);
  ~CudaStream() override;

  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void* native() noexcept override { return native_; }

  /// Returns the native stream when work may be enqueued on it: after a wait for the flag, or after the host work is
  /// done.
  cudaStream_t native_for_enqueue();
  /// Between these calls, record() returns captured events.
  void start_recording();
  void stop_recording() noexcept;
  /// Before a call that may block until the stream's work is done: waits for it, and runs the progress loop. The work
  /// may wait for an event of a stream that waits for the host. Does nothing during capture, which refuses such calls.
  void wait_for_work();

 private:
  void on_begin(const char* label) noexcept override;
  void on_end() noexcept override;
  /// Whether work may be enqueued before preceding host work is done.
  bool uses_flag() const noexcept { return flag_ && flags_.may_wait(); }
  device::HostQueue& host_work();
  void wait_for_host_work();
  Event work_before();
  Event record_native();
  void count_entry() noexcept;
  void wait_for_host_flag();

  HostFlags& flags_;
  cudaStream_t native_ = nullptr;
  EventRing events_;
  device::HostQueue queue_;
  HostFlag flag_;
  std::uint32_t held_ = 0;       // number of the last item that the stream waits for
  int entries_behind_wait_ = 0;  // since the queue was empty
  bool has_device_work_ = false; // device work was enqueued since the last item
  bool recording_ = false;
  const char* label_ = nullptr; // label of the action begun last
};

} // namespace triax::cuda
