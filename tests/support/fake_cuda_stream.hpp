// SPDX-License-Identifier: Apache-2.0
// A stream of the fake CUDA device. As in core/cuda, it consists of a native stream and a queue of host work.
//
// Threads: the rank's main thread; current() from any. Ownership: the queue refers to tasks and events of others; the
// device owns the lane. Blocking: ready(); launches too, while first use is announced. Errors: Error.
//
// An item of the queue (a wait for a host event, a host task) starts when the earlier items are complete and, for a
// task, when the earlier device work of the stream is. Later device work waits for the lane's flag, or is
// enqueued after it. The destructor ends that wait.
#pragma once

#include <cstdint>
#include <string>

#include "device/host_queue.hpp"
#include "support/fake_cuda_device.hpp"
#include "support/fake_cuda_lane.hpp"
#include "support/fake_cuda_tape.hpp"

namespace triax::test::fake_cuda {

class FakeStream final : public Stream, public FakeCudaStream {
 public:
  FakeStream(std::string name, Device& device, Lane& lane, const bool& lazy_load_guard);
  ~FakeStream() override;

  void wait(const Event& event) override;
  Event record() override;
  void post(HostTask& task) override;
  bool advance() noexcept override;
  void ready() override;
  void* native() noexcept override { return static_cast<FakeCudaStream*>(this); }

  void enqueue(std::function<void()> item) override;
  void* alias(void* inside) const override { return host_alias(inside); }
  /// Enqueues work after everything before.
  void launch(Item item);
  /// Makes work that a native library enqueues next run after everything before.
  void admit();
  /// Sends later work to the tape; null: to the stream.
  void record_on(Tape* tape);
  /// Runs the progress loop until the host work on this stream is complete.
  void wait_for_host_work();

 private:
  device::HostQueue& host_work();
  Event work_before();
  void hold_back();

  Lane& lane_;
  device::HostQueue queue_;
  const bool& first_use_;  // owned by the device
  std::uint32_t held_ = 0; // number of the last queue item that device work waits for
  bool worked_ = false;    // device work was enqueued since the last queue item
  Tape* tape_ = nullptr;
};

} // namespace triax::test::fake_cuda
